"""Values written for people to read."""

from inloop.build.starter.library import cases


@cases(1234567, 0, 999, 1000, 12, 45678, 1000000, 100, 987654, 70001)
def with_commas(number):
    """Write a number with a comma before every three digits."""
    digits = str(number)
    groups = []
    while len(digits) > 3:
        groups.insert(0, digits[-3:])
        digits = digits[:-3]
    groups.insert(0, digits)
    return ",".join(groups)


@cases(1, 2, 3, 11, 12, 13, 21, 22, 101, 111, 4, 0)
def ordinal(number):
    """Write a number as a place in an order."""
    if number % 100 in (11, 12, 13):
        return str(number) + "th"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return str(number) + ending


@cases(500, 2048, 0, 1024, 1023, 5242880, 1536, 3221225472, 10240, 1048576)
def file_size(size):
    """Write a number of bytes with a fitting unit."""
    for unit in ["B", "KB", "MB"]:
        if size < 1024:
            return f"{size:g} {unit}"
        size = size / 1024
    return f"{size:g} GB"


@cases((1, "cat"), (2, "dog"), (0, "box"), (3, "city"), (5, "bus"), (1, "city"), (7, "day"), (4, "fox"), (2, "berry"), (9, "pen"))
def plural(count, noun):
    """Write a count with its noun."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith(("s", "x")):
        noun += "es"
    elif noun.endswith("y") and noun[-2] not in "aeiou":
        noun = noun[:-1] + "ies"
    else:
        noun += "s"
    return f"{count} {noun}"


@cases((["a", "b", "c"],), (["x"],), ([],), (["p", "q"],), (["one", "two", "three", "four"],), (["", "b"],), (["m", "n", "o"],), (["red", "green"],), (["solo"],), (["u", "v", "w", "x", "y"],))
def sentence_list(items):
    """List words with commas and a last and."""
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]


@cases((3, 10, 10), (0, 5, 5), (5, 5, 4), (1, 4, 8), (1, 3, 6), (7, 10, 20), (2, 2, 2), (1, 2, 10), (9, 10, 5), (4, 16, 12))
def progress_bar(done, total, width):
    """Draw how much is done."""
    filled = done * width // total
    return "[" + "#" * filled + "." * (width - filled) + "]"


@cases(("title", 9), ("ab", 6), ("abc", 3), ("x", 2), ("long word", 4), ("", 5), ("mid", 8), ("even", 10), ("odd", 4), ("q", 7))
def banner(text, width):
    """Put a text between equal signs, the longer side on the right."""
    space = width - len(text)
    if space <= 0:
        return text
    left = space // 2
    return "=" * left + text + "=" * (space - left)


@cases((["a", "bbb"], 5), (["x"], 3), ([], 4), (["one", "two"], 4), (["left", "r"], 6), (["p", "q", "r"], 2), (["long", "cell"], 3), (["", "z"], 3), (["ab", "cd", "ef"], 4), (["name", "age"], 7))
def table_row(cells, width):
    """Write cells one beside the other, each filled up to a width."""
    out = []
    for cell in cells:
        out.append(cell.ljust(width))
    return "|".join(out).rstrip()


@cases((0.256, 1), (1, 0), (0.5, 0), (0.1234, 2), (0, 1), (0.999, 1), (0.3333, 0), (0.07, 2), (2.5, 1), (0.045, 1))
def percent(share, digits):
    """Write a share as a percentage."""
    value = round(share * 100, digits)
    if digits == 0:
        value = int(value)
    return str(value) + "%"


@cases(14, 1, 2024, 9, 58, 400, 3, 40, 1990, 6)
def roman(number):
    """Write a number in the Roman way."""
    out = ""
    steps = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    for value, letters in steps:
        while number >= value:
            out += letters
            number -= value
    return out


@cases("5551234567", "12345", "555-123-4567", "", "(555) 987 6543", "1 2 3", "0001112222", "800 555 0199", "99999999999", "212.555.0100")
def phone(text):
    """Write ten digits as a phone number; others stay as they are."""
    digits = "".join(letter for letter in text if letter.isdigit())
    if len(digits) != 10:
        return text
    return f"({digits[:3]}) {digits[3:6]}-{digits[6:]}"


@cases(("one\ntwo", 2), ("x", 4), ("", 3), ("a\n\nb", 1), ("  in", 2), ("p\nq\nr", 3), ("line", 0), ("m\n n", 2), ("u\nv", 4), ("\nlast", 1))
def indent(text, width):
    """Move every line that is not empty to the right."""
    out = []
    for line in text.split("\n"):
        if line:
            line = " " * width + line
        out.append(line)
    return "\n".join(out)


@cases(({"b": 1, "a": 2},), ({},), ({"x": "y"},), ({"n": None, "m": 3},), ({"k": 0},), ({"c": 1, "b": 2, "a": 3},), ({"p": True},), ({"z": None},), ({"u": "v", "t": "s"},), ({"one": 1, "two": 2},))
def to_query(values):
    """Write names and values as a query in the order of the names."""
    parts = []
    for name in sorted(values):
        if values[name] is not None:
            parts.append(f"{name}={values[name]}")
    return "&".join(parts)


@cases(0, 7, 13, 20, 42, 99, 80, 11, 55, 30)
def number_words(number):
    """Write a number below one hundred in words."""
    small = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    if number < 20:
        return small[number]
    word = tens[number // 10 - 2]
    if number % 10 > 0:
        word += "-" + small[number % 10]
    return word
