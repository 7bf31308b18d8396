"""Series of numbers and games with digits."""

from inloop.build.starter.library import cases


@cases(1, 2, 3, 6, 7, 9, 12, 15, 20, 27)
def collatz_peak(number):
    """Give the highest number on the way to 1, halving even ones and tripling odd ones plus one."""
    highest = number
    while number != 1:
        if number % 2 == 0:
            number //= 2
        else:
            number = number * 3 + 1
        highest = max(highest, number)
    return highest


@cases(1, 7, 4, 10, 19, 2, 13, 23, 86, 100, 44, 97)
def happy_steps(number):
    """Count the steps to 1 by adding up squared digits; -1 if it is never reached."""
    seen = []
    while number != 1:
        if number in seen:
            return -1
        seen.append(number)
        number = sum(int(digit) ** 2 for digit in str(number))
    return len(seen)


@cases(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
def pascal_row(index):
    """Give a row of the triangle in which each number is the sum of the two above."""
    row = [1]
    for step in range(index):
        middle = [left + right for left, right in zip(row, row[1:])]
        row = [1] + middle + [1]
    return row


@cases((38, 10), (0, 10), (9, 10), (999, 10), (12345, 10), (255, 16), (7, 2), (64, 8), (100, 7), (86, 5), (4096, 10))
def root_of_digits(number, base):
    """Add up the digits again and again until one is left."""
    while number >= base:
        total = 0
        while number > 0:
            total += number % base
            number //= base
        number = total
    return number


@cases(1, 3, 4, 6, 0, 10, 15, 20, 21, 28, 55, 56)
def triangle_rank(number):
    """Tell which triangular number it is, or None if it is none."""
    total = 0
    rank = 0
    while total < number:
        rank += 1
        total += rank
    return rank if total == number else None


@cases("1", "11", "21", "1211", "3", "", "222", "111221", "5566", "9990", "13112221")
def look_and_say(digits):
    """Read a number aloud: how many of which digit."""
    out = ""
    count = 0
    for index, digit in enumerate(digits):
        count += 1
        following = digits[index + 1 : index + 2]
        if digit != following:
            out += str(count) + digit
            count = 0
    return out


@cases((2, 6), (3, 6), (1, 4), (4, 7), (2, 0), (3, 1), (2, 10), (5, 8), (3, 9), (1, 1), (4, 3))
def summing_series(order, count):
    """List the numbers that are each the sum of the few before them."""
    numbers = [1]
    while len(numbers) < count:
        following = sum(numbers[-order:])
        numbers.append(following)
    return numbers[:count]


@cases(1, 4, 10, 11, 20, 0, 33, 50, 88, 100, 64)
def fibonacci_parts(number):
    """Split a number into Fibonacci numbers, the largest first."""
    series = [1, 2]
    while series[-1] < number:
        series.append(series[-1] + series[-2])
    parts = []
    for value in reversed(series):
        if value <= number:
            parts.append(value)
            number -= value
    return parts


@cases(6, 8, 12, 28, 1, 7, 18, 16, 20, 496, 15)
def abundance_kind(number):
    """Name a number by the sum of its smaller divisors."""
    total = 0
    for divisor in range(1, number // 2 + 1):
        if number % divisor == 0:
            total += divisor
    if total == number:
        return "perfect"
    return "abundant" if total > number else "deficient"


@cases(3524, 6174, 1111, 2111, 9831, 1234, 8, 5200, 7641, 9990, 495)
def kaprekar_steps(number):
    """Count the steps to 6174 or 0 by taking the low order of the four digits from the high one."""
    steps = 0
    while number not in (0, 6174):
        digits = sorted(str(number).zfill(4))
        low = int("".join(digits))
        high = int("".join(reversed(digits)))
        number = high - low
        steps += 1
    return steps


@cases((56, 9), (121, 9), (59, 9), (89, 5), (10, 3), (57, 1), (57, 2), (68, 0), (78, 9), (5, 2), (98, 4), (69, 6))
def mirror_sum(number, limit):
    """Add a number to its mirror until both are the same; None after too many tries."""
    for attempt in range(limit):
        mirrored = int(str(number)[::-1])
        if mirrored == number:
            return number
        number += mirrored
    return None


@cases((1, 20), (10, 21), (100, 112), (20, 36), (5, 5), (11, 11), (40, 54), (195, 204), (60, 72), (13, 17), (80, 100))
def harshad_numbers(start, stop):
    """List the numbers that their own digits, added up, divide."""
    found = []
    for number in range(start, stop + 1):
        total = sum(int(digit) for digit in str(number))
        if number % total == 0:
            found.append(number)
    return found


@cases((20, 1), (50, 2), (30, 4), (10, 2), (40, 6), (5, 2), (100, 8), (3, 1), (60, 10), (7, 4), (25, 3))
def prime_pairs(limit, gap):
    """List the first four pairs of primes up to a limit that lie a gap apart."""
    primes = []
    for number in range(2, limit + 1):
        if all(number % prime != 0 for prime in primes):
            primes.append(number)
    pairs = []
    for first in primes:
        second = first + gap
        if second in primes:
            pairs.append((first, second))
    return pairs[:4]


@cases(1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
def self_counting(count):
    """List numbers that tell how often each number stands in the list: 1 2 2 3 3 4 4 4."""
    series = [1, 2, 2]
    value = 3
    while len(series) < count:
        times = series[value - 1]
        series.extend([value] * times)
        value += 1
    return series[:count]
