"""Ones and zeros: bit counts, masks and texts of binary digits."""

from inloop.build.starter.library import cases


@cases(0, 1, 2, 3, 7, 8, 10, 255, 256, 1023, 37)
def count_set_bits(number):
    """Count the ones in the binary form of a number."""
    count = 0
    rest = number
    while rest > 0:
        count += rest & 1
        rest >>= 1
    return count


@cases((0, 3), (1, 3), (2, 3), (3, 3), (4, 3), (5, 4), (7, 4), (9, 4), (12, 5), (15, 4), (6, 2))
def gray_text(number, width):
    """Write the Gray code of a number with a given width."""
    code = number ^ (number >> 1)
    digits = ""
    for position in range(width):
        digit = "1" if code & (1 << position) else "0"
        digits = digit + digits
    return digits


@cases("0", "1", "11", "10", "110", "111", "1010", "0011", "1000", "1111", "10101")
def gray_value(text):
    """Work out which number a Gray code stands for."""
    value = 0
    last = 0
    for letter in text:
        last ^= int(letter)
        value = value * 2 + last
    return value


@cases(("1011", "even"), ("1011", "odd"), ("0000", "even"), ("0000", "odd"), ("1", "even"), ("1", "odd"), ("110", "even"), ("", "odd"), ("111111", "even"), ("10101", "odd"), ("01", "none"))
def add_parity_bit(text, kind):
    """Append the bit that makes the count of ones even or odd."""
    ones = text.count("1")
    if kind == "even":
        extra = ones % 2
    elif kind == "odd":
        extra = 1 - ones % 2
    else:
        return text
    return text + str(extra)


@cases((1, 4), (2, 4), (6, 4), (11, 4), (0, 8), (1, 8), (255, 8), (13, 5), (3, 2), (20, 5), (7, 3))
def mirror_bits(number, width):
    """Turn the bits of a number around within a width."""
    result = 0
    for position in range(width):
        bit = (number >> position) & 1
        if bit:
            result |= 1 << (width - 1 - position)
    return result


@cases((1, 0, 3), (8, 3, 0), (5, 0, 2), (5, 0, 1), (10, 1, 2), (0, 4, 5), (6, 1, 3), (255, 0, 7), (12, 2, 0), (16, 4, 1), (9, 0, 0))
def swap_two_bits(number, first, second):
    """Exchange the bits at two positions of a number."""
    one = (number >> first) & 1
    other = (number >> second) & 1
    if one != other:
        mask = (1 << first) | (1 << second)
        number ^= mask
    return number


@cases(0, 1, 2, 5, 8, 10, 15, 33, 96, 129, 256)
def set_bit_positions(number):
    """List the positions of the ones, the lowest first."""
    positions = []
    position = 0
    while number:
        if number % 2 == 1:
            positions.append(position)
        number //= 2
        position += 1
    return positions


@cases((0, 0), (0, 3), (1, 3), (2, 2), (3, 1), (4, 7), (7, 4), (0, 7), (5, 6), (6, 8), (8, 8))
def mask_from_to(low, high):
    """Make a mask of ones from one position to another, both included."""
    if low > high:
        low, high = high, low
    mask = 0
    for position in range(low, high + 1):
        mask |= 1 << position
    return mask


@cases((1, 1, 4), (8, 1, 4), (9, 1, 4), (9, 2, 4), (129, 1, 8), (3, 7, 8), (5, 3, 3), (6, 4, 3), (15, 2, 4), (0, 5, 8), (77, 4, 8))
def rotate_bits_left(number, shift, width):
    """Move the bits of a number left; those that fall off come back in."""
    shift %= width
    full = (1 << width) - 1
    left = (number << shift) & full
    right = number >> (width - shift)
    return left | right


@cases(0, 1, 5, 8, 9, 20, 15, 41, 529, 1041, 69, 32)
def longest_zero_gap(number):
    """Find the longest run of zeros between two ones in binary."""
    digits = format(number, "b").strip("0")
    longest = 0
    current = 0
    for digit in digits:
        current = current + 1 if digit == "0" else 0
        longest = max(longest, current)
    return longest


@cases((5, 8), (-1, 8), (-1, 4), (-8, 4), (7, 4), (8, 4), (-9, 4), (0, 3), (-3, 5), (-128, 8), (12, 6))
def signed_to_bits(number, width):
    """Write a number in two's complement, or None if it does not fit."""
    limit = 1 << (width - 1)
    if number < -limit or number >= limit:
        return None
    if number < 0:
        number += 2 * limit
    digits = format(number, "b")
    return digits.rjust(width, "0")


@cases("0", "1", "01", "10", "0111", "1000", "1111", "11111101", "00000101", "101", "", "0 1 1 0")
def bits_to_signed(text):
    """Read a number in two's complement."""
    digits = text.replace(" ", "")
    value = 0
    for digit in digits:
        value = value * 2 + int(digit)
    if digits.startswith("1"):
        value -= 2 ** len(digits)
    return value


@cases(("1", "1"), ("0", "0"), ("10", "1"), ("11", "1"), ("101", "11"), ("1", "111"), ("1010", "1011"), ("", "10"), ("1111", "1111"), ("100", "1"), ("110", "011"))
def add_binary_texts(left, right):
    """Add two numbers that are written in binary digits."""
    width = max(len(left), len(right))
    pairs = zip(left.zfill(width), right.zfill(width))
    digits = []
    carry = 0
    for first, second in reversed(list(pairs)):
        total = int(first) + int(second) + carry
        digits.append(str(total % 2))
        carry = total // 2
    if carry:
        digits.append("1")
    return "".join(reversed(digits))


@cases(("10100001", 4), ("1", 4), ("11110", 4), ("", 4), ("101010", 2), ("1111111", 3), ("100000000", 8), ("0001", 4), ("110110", 3), ("10", 1), ("1234567", 5))
def group_binary_digits(text, size):
    """Cut binary digits into groups from the right, the first filled with zeros."""
    lacking = -len(text) % size
    padded = "0" * lacking + text
    groups = []
    for start in range(0, len(padded), size):
        groups.append(padded[start : start + size])
    return "_".join(groups)


@cases(([True, False], ["a", "b"]), ([], []), ([True], ["x"]), ([False, True, True], ["r", "w", "x"]), ([True, True, True], ["r", "w", "x"]), ([False], ["q"]), ([True, False, True], ["k", "l", "m"]), ([False, False, True], ["n", "o", "p"]),
       ([True, True], ["s", "t"]), ([False, True, False, True], ["e", "f", "g", "h"]))
def pack_flag_bits(flags, names):
    """Pack yes and no into one number, and name the flags that are on."""
    number = 0
    active = []
    for index, flag in enumerate(flags):
        if flag:
            number |= 1 << index
            active.append(names[index])
    return number, ",".join(active)
