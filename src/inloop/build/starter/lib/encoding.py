"""Texts and bytes in other forms."""

from inloop.build.starter.library import cases


@cases([72, 105], [], [0, 255], [16], [1, 2, 3], [171, 205], [15, 240], [127, 128], [9, 10, 11], [200])
def to_hex(numbers):
    """Write bytes with two hexadecimal digits each."""
    digits = "0123456789abcdef"
    out = ""
    for number in numbers:
        out += digits[number // 16] + digits[number % 16]
    return out


@cases("ff00ff", "#fff", "000000", "#1a2b3c", "abc", "#102030", "808080", "#f0a", "c0ffee", "#010203")
def parse_color(text):
    """Read a colour as three numbers; three digits are a short form."""
    digits = text.lstrip("#")
    if len(digits) == 3:
        digits = "".join(letter * 2 for letter in digits)
    return [int(digits[i : i + 2], 16) for i in range(0, 6, 2)]


@cases((255, 0, 128), (0, 0, 0), (16, 16, 16), (1, 2, 3), (255, 255, 255), (170, 187, 204), (10, 100, 200), (9, 90, 15), (64, 32, 8), (240, 15, 31))
def color_text(red, green, blue):
    """Write a colour with six hexadecimal digits."""
    parts = ["#"]
    for value in (red, green, blue):
        parts.append(hex(value)[2:].zfill(2))
    return "".join(parts)


@cases("a&b", "<p>", "plain", "", "1 < 2 & 3 > 2", '"q"', "&lt;", "x>y", "<a><b>", "& &")
def escape_html(text):
    """Write the marks of a web page so that they show as text."""
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    out = ""
    for letter in text:
        out += marks.get(letter, letter)
    return out


@cases("a%20b", "", "100%25", "x+y", "%41%42", "no", "a%2Fb", "end%21", "+%2B+", "q%3D1")
def unquote(text):
    """Read a text in which signs are written as percent codes."""
    pieces = text.replace("+", " ").split("%")
    out = pieces[0]
    for piece in pieces[1:]:
        out += chr(int(piece[:2], 16)) + piece[2:]
    return out


@cases("a b", "", "x/y", "plain", "100%", "a=b&c", "A-Z_0.9", "q?", "two  gaps", "x+1")
def quote(text):
    """Write a text with percent codes for its signs."""
    out = []
    for letter in text:
        if letter.isalnum() or letter in "-_.":
            out.append(letter)
        else:
            out.append(f"%{ord(letter):02X}")
    return "".join(out)


@cases("SOS", "a", "", "et", "tea", "sat", "no", "mat", "nest", "tons")
def to_morse(text):
    """Write letters with dots and dashes."""
    codes = {"a": ".-", "e": ".", "m": "--", "n": "-.", "o": "---", "s": "...", "t": "-"}
    out = []
    for letter in text.lower():
        out.append(codes[letter])
    return " ".join(out)


@cases("a3b2", "x", "", "z10", "ab", "h2o", "m1n3", "w12", "p2qr2", "k4")
def expand_runs(text):
    """Write out letters that are followed by a count."""
    out = ""
    index = 0
    while index < len(text):
        letter, digits = text[index], ""
        index += 1
        while index < len(text) and text[index].isdigit():
            digits += text[index]
            index += 1
        out += letter * int(digits or 1)
    return out


@cases("abc", "Hello, World", "", "xyz", "NOON", "a1b2", "Attack now", "mirror", "Zebra", "The End")
def mirror_alphabet(text):
    """Swap each letter with the one at the other end of the alphabet."""
    out = ""
    for letter in text:
        if letter.islower():
            letter = chr(ord("z") - ord(letter) + ord("a"))
        elif letter.isupper():
            letter = chr(ord("Z") - ord(letter) + ord("A"))
        out += letter
    return out


@cases((b"abc", 256), (b"", 10), (b"a", 7), (b"hello", 100), (b"zz", 50), (b"\x00\x01\x02", 5), (b"check", 97), (b"sum", 13), (b"Data 1", 255), (b"\xff\xff", 256))
def checksum(data, size):
    """Add up bytes, each times its place, within a size."""
    total = 0
    for place, byte in enumerate(data, 1):
        total = (total + place * byte) % size
    return total


@cases("101", "0", "1111", "1000", "1", "11011", "100000", "0110", "10101", "111111")
def from_binary(text):
    """Read a number written with ones and zeros."""
    value = 0
    for digit in text:
        value = value * 2
        if digit == "1":
            value += 1
    return value


@cases("A", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "c", "XY", "J")
def column_number(name):
    """Number the columns of a sheet that letters name."""
    number = 0
    for letter in name.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


@cases(([1, 0, 1], 1), ([1, 1], 0), ([], 0), ([0, 0, 0], 1), ([1, 1, 1, 1], 1), ([1], 1), ([0, 1, 0, 1], 0), ([1, 0], 0), ([0, 0, 1], 1), ([1, 1, 0, 1, 1], 1))
def parity_ok(bits, parity):
    """Tell if bits and their parity bit have an even number of ones."""
    ones = bits.count(1) + parity
    return ones % 2 == 0


@cases(("abc", "k"), ("hello", "key"), ("", "x"), ("zzz", "ab"), ("attack", "lemon"), ("aaaa", "bc"), ("test", "t"), ("word", "az"), ("mno", "m"), ("python", "code"))
def vigenere(text, key):
    """Move each letter along the alphabet by a letter of the key."""
    out = ""
    for index, letter in enumerate(text):
        shift = ord(key[index % len(key)]) - ord("a")
        out += chr((ord(letter) - ord("a") + shift) % 26 + ord("a"))
    return out
