"""Small helpers for whole numbers: limits, digits, remainders, steps and signs."""

from inloop.build.starter.library import cases


@cases(([1, 5, 9], 2, 6), ([0, 10], 1, 8), ([], 0, 5), ([4, 4], 4, 4), ([-3, 3], -1, 1), ([7, 2, 8], 3, 7), ([15], 0, 9), ([-8, 0], -5, 5), ([6, 1], 2, 3), ([2, 3], 1, 4))
def clamp_all(values, low, high):
    """Keep every number of a list inside a range."""
    result = []
    for value in values:
        inside = min(value, high)
        result.append(max(low, inside))
    return result


@cases(1234, 2468, 0, 13579, -246, 808, 11, -35, 90210, 7, 46)
def count_even_digits(number):
    """Count the even digits of a number."""
    count = 0
    for digit in str(abs(number)):
        if int(digit) % 2 == 0:
            count += 1
    return count


@cases((7, 5), (10, 5), (0, 4), (13, 6), (24, 12), (-3, 5), (99, 10), (8, 3), (-8, 4), (1, 7))
def next_multiple(number, step):
    """Find the first multiple of a step that is greater than a number."""
    rest = number % step
    result = number - rest
    return result + step


@cases((12, 5), (13, 5), (15, 10), (14, 10), (0, 7), (25, 4), (26, 4), (-7, 4), (99, 50), (20, 8), (31, 6))
def nearest_step(value, step):
    """Round a number to the nearest step, halves up."""
    rest = value % step
    result = value - rest
    if rest * 2 >= step:
        result += step
    return result


@cases([1, -2, 3], [], [0, 0], [-1, -5, 4], [7, 8, 0], [-9], [2, 0, -2], [5], [-3, 0, -4, 6], [10, 20, -1, 30], [0, 1, 1])
def sign_balance(numbers):
    """Count the positive numbers less the negative ones."""
    total = 0
    for number in numbers:
        if number > 0:
            total += 1
        elif number < 0:
            total -= 1
    return total


@cases(1234, 7, 0, 918082, 55, 121, 90, 4321, 1001, 86)
def alternating_digits(number):
    """Add and take away the digits of a number in turn, from the last."""
    total, sign = 0, 1
    for digit in reversed(str(number)):
        total += sign * int(digit)
        sign = -sign
    return total


@cases(([7, 8, 9], 3), ([10, 4, 7], 5), ([], 2), ([6, 12], 6), ([5, 3, 1], 4), ([11, 22, 33], 7), ([9, 8, 8], 10), ([2, 4], 2), ([17, 5, 29], 12), ([3, 1, 4, 1], 5))
def remainders_left(numbers, divisor):
    """List the remainders of a division without zero, the lowest first."""
    found = []
    for number in numbers:
        rest = number % divisor
        if rest > 0:
            found.append(rest)
    return sorted(found)


@cases((13, 1, 12), (0, 1, 12), (5, 0, 6), (7, 0, 6), (-1, 0, 9), (25, 10, 19), (8, 3, 5), (-4, -3, 3), (12, 1, 12), (40, 1, 31))
def wrap_into(value, low, high):
    """Bring a number into a range by starting over at its other end."""
    span = high - low + 1
    shift = (value - low) % span
    return low + shift


@cases(1234, 7, 50, 4001, 99, 12, 306, 8765, 210, 45)
def swap_end_digits(number):
    """Swap the first and the last digit of a number."""
    digits = list(str(number))
    first, last = digits[0], digits[-1]
    digits[0], digits[-1] = last, first
    return int("".join(digits))


@cases((7, 2), (-7, 2), (7, -2), (-7, -2), (0, 3), (9, 3), (-20, 6), (1, 5), (-1, 5), (35, -8), (-12, -5))
def quotient_to_zero(number, divisor):
    """Divide two whole numbers and cut what is left toward zero."""
    result = abs(number) // abs(divisor)
    if (number < 0) != (divisor < 0):
        result = -result
    return result


@cases(3, 5, 15, 7, 30, 9, 20, 1, 45, 12, 25, 14)
def fizz_or_buzz(number):
    """Say fizz for multiples of three, buzz for five, else the number."""
    result = ""
    if number % 3 == 0:
        result += "fizz"
    if number % 5 == 0:
        result += "buzz"
    return result or str(number)


@cases(325, 40, 7, 0, 1006, 88, 510, 2300, 19, 9001)
def digit_place_values(number):
    """List what each digit is worth, from the ones up."""
    parts = []
    digits = str(number)
    for i, digit in enumerate(reversed(digits)):
        parts.append(int(digit) * 10**i)
    return parts
