"""Is it right? Small checks of texts and numbers."""

from inloop.build.starter.library import cases


@cases("abc", "Abcdef12", "ABCDEFG1", "abcdefgh", "aB3", "Passw0rd", "12345678", "longEnough", "Good1Good", "nouppercase1")
def strong_password(text):
    """Tell if a password is long and has a capital letter and a digit."""
    if len(text) < 8:
        return False
    has_upper = any(letter.isupper() for letter in text)
    has_digit = any(letter.isdigit() for letter in text)
    return has_upper and has_digit


@cases("79927398713", "79927398710", "0", "18", "4539", "1234567812345670", "26", "59", "42", "91")
def luhn_ok(number):
    """Check the last digit of a card number."""
    total = 0
    for index, digit in enumerate(reversed(number)):
        value = int(digit)
        if index % 2 == 1:
            value *= 2
            if value > 9:
                value -= 9
        total += value
    return total % 10 == 0


@cases("1.2.3.4", "256.1.1.1", "1.2.3", "", "0.0.0.0", "a.b.c.d", "1.2.3.4.5", "192.168.0.1", "255.255.255.255", "1..2.3")
def is_ip(text):
    """Tell if a text is an address of four numbers."""
    parts = text.split(".")
    if len(parts) != 4:
        return False
    for part in parts:
        if not part.isdigit() or int(part) > 255:
            return False
    return True


@cases("name", "2fast", "", "_x", "a b", "is-ok", "snake_case", "x1", "9", "Good_1")
def is_identifier(text):
    """Tell if a text can name a variable."""
    if not text or text[0].isdigit():
        return False
    for letter in text:
        if not letter.isalnum() and letter != "_":
            return False
    return True


@cases((2024, 2, 29), (2023, 2, 29), (2023, 4, 31), (2023, 12, 31), (2023, 0, 5), (2023, 13, 1), (2000, 6, 30), (1999, 1, 32), (2010, 9, 0), (2020, 2, 28))
def is_date(year, month, day):
    """Tell if there is such a day."""
    if not 1 <= month <= 12:
        return False
    last = 31
    if month in (4, 6, 9, 11):
        last = 30
    elif month == 2:
        last = 29 if year % 4 == 0 else 28
    return 1 <= day <= last


@cases("0306406152", "0306406153", "123", "155860832X", "0471958697", "0-306-40615-2", "1234567890", "020161622X", "0131103628", "0131103629")
def isbn_ok(text):
    """Check the last digit of a book number."""
    digits = text.replace("-", "")
    if len(digits) != 10:
        return False
    total = 0
    for index, digit in enumerate(digits):
        value = 10 if digit == "X" else int(digit)
        total += (10 - index) * value
    return total % 11 == 0


@cases("3.14", "-2", "", "abc", "1.2.3", "+7", "--1", ".5", "10", "5.", "-0.5")
def is_number(text):
    """Tell if a text is a number with at most one point."""
    if text[:1] in ("+", "-"):
        text = text[1:]
    digits = text.replace(".", "", 1)
    return digits.isdigit()


@cases(([[1, 2], [2, 1]],), ([[1, 1], [2, 2]],), ([[1]],), ([[1, 2, 3], [2, 3, 1], [3, 1, 2]],), ([[1, 2, 3], [1, 2, 3], [1, 2, 3]],), ([[2, 1], [1, 2]],), ([[1, 2], [1, 2]],), ([[3, 1, 2], [1, 2, 3], [2, 3, 1]],), ([[2]],),
       ([[1, 2, 3], [2, 1, 3], [3, 2, 1]],))
def is_latin(rows):
    """Tell if every row and column of a square holds each number once."""
    wanted = list(range(1, len(rows) + 1))
    for line in rows + [list(column) for column in zip(*rows)]:
        if sorted(line) != wanted:
            return False
    return True


@cases(({"name": "Ann"}, ["name", "age"]), ({"a": 1, "b": 2}, ["a"]), ({}, ["x"]), ({"k": ""}, ["k"]), ({"m": None, "n": 0}, ["m", "n"]), ({"p": 1}, []), ({"q": "v", "r": ""}, ["q", "r", "s"]), ({"t": []}, ["t"]), ({"u": 5, "v": 6}, ["v", "w"]),
       ({"e": "e"}, ["f", "e", "d"]))
def missing_fields(form, required):
    """List the required fields that a form lacks or leaves empty."""
    missing = []
    for field in required:
        if form.get(field) in (None, ""):
            missing.append(field)
    return missing


@cases("XOX.O.X.O", "XXX......", "OOO......", "XO..XO..X", "X..X..X..", ".........", "O..OX.OXX", "..X.X.X..", "XOXOXOOXO", "XX.OO....")
def winner(board):
    """Name who has three in a row on a board of nine."""
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    for a, b, c in lines:
        if board[a] != "." and board[a] == board[b] == board[c]:
            return board[a]
    return None


@cases(("a-b", "ab"), ("a*c", "abc"), ("*", ""), ("h*o", "hello"), ("x*", "y"), ("*.py", "main.py"), ("ab", "abc"), ("a*", "a"), ("no", "no"), ("*end", "ends"))
def matches(pattern, text):
    """Tell if a text fits a pattern that may hold one star."""
    if "*" not in pattern:
        return pattern == text
    head, tail = pattern.split("*", 1)
    if len(text) < len(head) + len(tail):
        return False
    return text.startswith(head) and text.endswith(tail)
