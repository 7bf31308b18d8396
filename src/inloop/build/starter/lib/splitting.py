"""Texts into parts: fields, halves, chunks, before and after a mark, key and value."""

from inloop.build.starter.library import cases


@cases("abcd", "abcde", "", "x", "noon", "level", "ab", "hello!", "seven77", "12-34", "left right")
def text_halves(text):
    """Part a text in the middle and leave out an odd letter there."""
    half = len(text) // 2
    left = text[:half]
    right = text[len(text) - half :]
    return left, right


@cases(("abcdef", 2), ("abcde", 2), ("", 3), ("x", 4), ("hello", 3), ("1234567", 3), ("noon", 1), ("letters", 4), ("ab", 2), ("a b c", 2), ("chunky", 5))
def letter_chunks(text, size):
    """Cut a text into chunks, the last one filled with dots."""
    chunks = []
    while text:
        chunk = text[:size]
        chunks.append(chunk.ljust(size, "."))
        text = text[size:]
    return chunks


@cases(("a:b", ":"), ("a:b:c", ":"), ("abc", ":"), ("", "-"), ("x-", "-"), ("-y", "-"), ("to do - now", "-"), ("k = v", "="), ("one/two/three", "/"), ("no mark", "#"), ("p#q # r", "#"))
def after_last_mark(text, mark):
    """Give what follows the last mark, or the whole text without one."""
    position = text.rfind(mark)
    if position < 0:
        return text
    rest = text[position + len(mark) :]
    return rest.strip()


@cases(("a:b", ":"), ("a:b:c", ":"), ("abc", ":"), ("", "-"), ("x--y", "--"), ("-y", "-"), ("to do - now", "-"), ("k = v", "="), ("one/two/three", "/"), ("no mark", "#"), (" p # q", "#"))
def before_first_mark(text, mark):
    """Give what stands before a mark, or nothing at all without one."""
    position = text.find(mark)
    if position == -1:
        return None
    head = text[:position]
    return head.strip()


@cases("Name: Ann", "a=1", "x: y=z", "p=q: r", "none", "", "Key :v ", "SIZE = 10", "k=", ":v", "Time: 10:30")
def key_and_value(line):
    """Part a line at its colon, or else its equal sign, the key in lower case."""
    mark = ":" if ":" in line else "="
    key, mark, value = line.partition(mark)
    if not mark:
        return line, None
    return key.strip().lower(), value.strip()


@cases(("abcdef", [2, 3]), ("Ann  12", [5, 2]), ("", [1, 2]), ("xyz", [1, 1, 1]), ("ab cd", [3, 2]), ("12345", [2]), ("one two", [4, 3]), ("a  b", [3, 1]), ("hello", []), ("p q r", [2, 2, 1]), ("tea 5", [4, 4]))
def fields_by_width(line, widths):
    """Cut a line into fields by width."""
    fields = []
    start = 0
    for width in widths:
        end = start + width
        fields.append(line[start:end].strip())
        start = end
    return fields


@cases("x = 1 # one", "# all", "plain", "", "a#b#c", "y  #", "go # to # end", "url", "k = 2 #two", "  z # note ", "#")
def code_and_note(line):
    """Part a line of code from the note behind it."""
    code, mark, note = line.partition("#")
    if not mark:
        return line, None
    return code.rstrip(), note.strip()


@cases("camelCase", "HTTP", "plain", "", "OneTwo", "aBc", "getUserName", "X", "myURL", "Big", "some TextHere")
def split_at_capitals(name):
    """Part a name before every capital letter, and write the parts in lower case."""
    parts = [""]
    for letter in name:
        if letter.isupper() and parts[-1]:
            parts.append("")
        parts[-1] += letter.lower()
    return parts


@cases("12kg", "5 m", "kg", "", "100", "7.5cm", "3days", "40 %", "2x4", "9", "60km/h", "a1")
def amount_and_unit(text):
    """Part the digits at the start from the unit behind them."""
    end = 0
    while end < len(text) and text[end].isdigit():
        end += 1
    amount = int(text[:end] or 0)
    return amount, text[end:].strip()


@cases((["a", "", "b"],), (["a", "b"],), ([],), (["", "x"],), (["p", "q", "", "", "r"],), (["one", ""],), (["", ""],), (["m", " ", "n"],), (["k", "", "l", "", "m"],), (["u", "v", "", "w", "x"],))
def split_at_blank_lines(lines):
    """Part lines into groups at blank ones."""
    groups = [[]]
    for line in lines:
        if line.strip():
            groups[-1].append(line)
        else:
            groups.append([])
    return groups


@cases("--size=5", "-v", "--all", "file", "", "--name=a=b", "-", "--Color=Red", "-o=out", "x=1", "--=y", "-k")
def option_parts(word):
    """Part an option into name and value; one without a value is on."""
    if not word.startswith("-"):
        return None
    name, mark, value = word.partition("=")
    return name.lstrip("-"), value if mark else True


@cases(("a, b,c", 2), ("x", 3), ("", 1), ("p,q", 2), ("one,two,three", 2), (" m , n ", 3), ("k,l,m,n", 4), ("u,v", 1), ("red, blue", 4), ("1,2,3", 1))
def fields_filled_up(line, count):
    """Split a line at commas into exactly so many fields."""
    fields = [field.strip() for field in line.split(",")]
    while len(fields) < count:
        fields.append("")
    return fields[:count]
