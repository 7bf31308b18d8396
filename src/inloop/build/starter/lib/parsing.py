"""Texts with a structure, taken apart."""

from inloop.build.starter.library import cases


@cases("a=1;b=2", "", "x=y", "k = v ; m = n", "flag", "a=1;a=2", "p=q=r", "one=1;;two=2", " lead=5", "t=;u=3")
def parse_pairs(text):
    """Read pairs of names and values."""
    out = {}
    for part in text.split(";"):
        if "=" in part:
            name, value = part.split("=", 1)
            out[name.strip()] = value.strip()
    return out


@cases("a=1&b=2", "", "q=hello", "x=1&x=2", "flag&k=v", "m=&n=3", "page=2&size=10", "a=b=c", "u=1&v=2&w=3", "sort=asc&flag")
def parse_query(text):
    """Read the query of an address; a name without a value has an empty one."""
    out = {}
    for part in text.split("&"):
        if part:
            name, mark, value = part.partition("=")
            out[name] = value
    return out


@cases("1.2.3", "10.0", "7", "v2.5", "0.0.1", "v1", "3.14.15", "v10.20.30", "2.0.0", "4.1")
def parse_version(text):
    """Read a version as three numbers."""
    parts = [int(part) for part in text.removeprefix("v").split(".")]
    while len(parts) < 3:
        parts.append(0)
    return parts


@cases(("1.2", "1.10"), ("2.0", "2.0"), ("1.5", "1.4"), ("1", "1.1"), ("3.2.1", "3.2"), ("0.9", "0.10"), ("4.0", "3.9.9"), ("7", "7"), ("1.0.1", "1.0.2"),
       ("10", "9"))
def newer(first, second):
    """Tell if the first version is newer than the second one."""
    left = [int(part) for part in first.split(".")]
    right = [int(part) for part in second.split(".")]
    return left > right


@cases("1-3,5", "7", "", "2-2", "10-12,1", "4,6,8", "1-2,4-5", "9-7", "3,3", "20-23")
def parse_ranges(text):
    """List the numbers that a text of ranges names."""
    numbers = []
    for part in text.split(","):
        if "-" in part:
            low, high = part.split("-")
            numbers.extend(range(int(low), int(high) + 1))
        elif part:
            numbers.append(int(part))
    return numbers


@cases("a,b,c", '"a,b",c', "", "one", '"x"', 'p,"q,r",s', ",", 'a,"",b', '"1,2","3,4"', "m,,n")
def split_csv(line):
    """Split a line at its commas, but not inside quotes."""
    cells, cell, quoted = [], "", False
    for letter in line:
        if letter == '"':
            quoted = not quoted
        elif letter == "," and not quoted:
            cells.append(cell)
            cell = ""
        else:
            cell += letter
    return cells + [cell]


@cases("# Title", "## Part two", "plain", "", "#### Deep one", "#nospace", "###### Six", "a # b", "### Three  ", "## ")
def heading(line):
    """Read the level and the text of a heading."""
    text = line.lstrip("#")
    level = len(line) - len(text)
    if level == 0 or not text.startswith(" "):
        return None
    return level, text.strip()


@cases("10k", "5", "2M", "1.5k", "0", "3g", "7K", "12m", "0.5M", "100")
def parse_size(text):
    """Read a number that may end with a unit."""
    units = {"k": 1000, "m": 1000000, "g": 1000000000}
    unit = text[-1].lower()
    if unit in units:
        return int(float(text[:-1]) * units[unit])
    return int(text)


@cases("yes", "No", "TRUE", "0", "on", "off", "maybe", "1", " y ", "", "False")
def parse_bool(text):
    """Read a yes or a no; anything else is neither."""
    word = text.strip().lower()
    if word in ("yes", "y", "true", "on", "1"):
        return True
    if word in ("no", "n", "false", "off", "0"):
        return False
    return None


@cases("3 + 4", "10 - 2 - 3", "5", "2 * 3", "1 + 2 * 3", "8 - 1 + 4", "7 * 0", "6 * 2 - 5", "9 - 9", "2 + 2 + 2")
def calculate(text):
    """Work out a line of numbers and signs, from left to right."""
    parts = text.split()
    result = int(parts[0])
    for sign, number in zip(parts[1::2], parts[2::2]):
        if sign == "+":
            result += int(number)
        elif sign == "-":
            result -= int(number)
        else:
            result *= int(number)
    return result


@cases("3 4 +", "5", "2 3 4 * +", "9 4 -", "1 2 + 3 *", "8 2 - 3 -", "7 7 *", "10 3 2 + -", "6 1 2 * -", "2 2 + 2 2 + *")
def postfix(text):
    """Work out numbers and signs where each sign follows its numbers."""
    stack = []
    for token in text.split():
        if token not in "+-*":
            stack.append(int(token))
            continue
        right, left = stack.pop(), stack.pop()
        if token == "+":
            stack.append(left + right)
        elif token == "-":
            stack.append(left - right)
        else:
            stack.append(left * right)
    return stack.pop()


@cases("(a)", "(()", "", ")(", "[x]", "([)]", "{[()]}", "a(b[c]d)e", "]", "((()))", "(]")
def is_balanced(text):
    """Tell if every bracket is closed by its own kind."""
    closers = {")": "(", "]": "[", "}": "{"}
    stack = []
    for letter in text:
        if letter in "([{":
            stack.append(letter)
        elif letter in closers:
            if not stack or stack.pop() != closers[letter]:
                return False
    return not stack


@cases("XIV", "I", "MMXXIV", "IX", "LVIII", "CD", "III", "XL", "MCMXC", "VI")
def roman_value(text):
    """Read a Roman number."""
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    before = 0
    for letter in reversed(text):
        value = values[letter]
        if value < before:
            total -= value
        else:
            total += value
        before = value
    return total


@cases("a1b22c", "", "no", "2024-05", "x9y8", "007", "12 apples 3 pears", "v3.14", "5", "mix1and2")
def find_numbers(text):
    """List the numbers that stand in a text."""
    found = []
    digits = ""
    for letter in text + " ":
        if letter.isdigit():
            digits += letter
        elif digits:
            found.append(int(digits))
            digits = ""
    return found


@cases("#hi there", "", "say #a and #b", "none", "#one#two", "x #Tag, y", "# alone", "#up #UP", "end #last", "c# is no tag")
def hashtags(text):
    """List the tags of a text in lower case."""
    tags = []
    for word in text.split():
        if word.startswith("#") and len(word) > 1:
            tags.append(word[1:].rstrip(",.!").lower())
    return tags


@cases("a.b@c.de", "x@y", "no at", "", "Ann@Mail.Com", "@host", "me@", "first.last@site.org", "a@b@c", "BOB@web")
def mail_parts(address):
    """Part an address into the name and the host."""
    name, mark, host = address.rpartition("@")
    if not name or not host:
        return None
    return name, host.lower()


@cases("key: value", "a:b", "", "no colon", "# note", "  x :  y ", "url: http://a", "#k: v", "empty:", "m : n : o")
def parse_setting(line):
    """Read a setting; notes and lines without a colon give nothing."""
    if line.startswith("#") or ":" not in line:
        return None
    name, value = line.split(":", 1)
    return name.strip(), value.strip()
