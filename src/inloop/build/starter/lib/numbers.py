"""Whole numbers and simple arithmetic."""

from inloop.build.starter.library import cases


@cases((5, 1, 10), (-3, 0, 7), (99, 0, 50), (4, 4, 4), (0, 1, 3), (10, 2, 9), (7, 7, 8), (-1, -5, -2), (2, 0, 5), (6, 1, 6))
def clamp(value, low, high):
    """Keep a number inside a range."""
    if value < low:
        return low
    if value > high:
        return high
    return value


@cases((12, 18), (7, 5), (0, 4), (100, 75), (9, 9), (4, 0), (81, 27), (17, 51), (48, 36), (14, 6))
def gcd(first, second):
    """Give the greatest common divisor of two numbers."""
    while second:
        first, second = second, first % second
    return first


@cases(2, 1, 9, 17, 0, 25, 29, 4, 3, 49, 31, 15)
def is_prime(number):
    """Tell if a number is prime."""
    if number < 2:
        return False
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True


@cases(123, 0, 9, 4004, 999, 10, 87, 505, 31, 7777)
def digit_sum(number):
    """Add up the digits of a number."""
    total = 0
    while number > 0:
        total += number % 10
        number = number // 10
    return total


@cases(5, 0, 1, 7, 2, 10, 3, 6, 4, 8)
def factorial(number):
    """Multiply all whole numbers up to a number."""
    result = 1
    for factor in range(2, number + 1):
        result *= factor
    return result


@cases(0, 1, 2, 7, 10, 3, 5, 12, 4, 20)
def fibonacci(index):
    """Give a number of the Fibonacci sequence."""
    first, second = 0, 1
    for step in range(index):
        first, second = second, first + second
    return first


@cases(12, 1, 7, 28, 16, 10, 3, 36, 25, 6)
def divisors(number):
    """List all divisors of a number."""
    found = []
    for candidate in range(1, number + 1):
        if number % candidate == 0:
            found.append(candidate)
    return found


@cases(6, 28, 12, 1, 496, 10, 8, 25, 2, 120)
def is_perfect(number):
    """Tell if a number is the sum of its smaller divisors."""
    total = 0
    for divisor in range(1, number):
        if number % divisor == 0:
            total += divisor
    return number > 1 and total == number


@cases(13, 1, 6, 0, 255, 8, 100, 5, 64, 33)
def to_binary(number):
    """Write a number with ones and zeros."""
    if number == 0:
        return "0"
    digits = ""
    while number > 0:
        digits = str(number % 2) + digits
        number //= 2
    return digits


@cases((255, 16), (10, 2), (0, 7), (35, 36), (64, 8), (100, 3), (17, 16), (7, 7), (48879, 16), (12, 5))
def to_base(number, base):
    """Write a number in another base."""
    symbols = "0123456789abcdefghijklmnopqrstuvwxyz"
    out = ""
    while number:
        number, rest = divmod(number, base)
        out = symbols[rest] + out
    return out or "0"


@cases(6, 1, 7, 27, 16, 2, 3, 12, 9, 5)
def collatz_steps(number):
    """Count the steps of the Collatz rule down to one."""
    steps = 0
    while number != 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = 3 * number + 1
        steps += 1
    return steps


@cases(153, 10, 9, 370, 100, 407, 154, 1634, 12, 371)
def is_armstrong(number):
    """Tell if the powers of the digits of a number add up to it."""
    digits = str(number)
    power = len(digits)
    total = sum(int(digit) ** power for digit in digits)
    return total == number


@cases((7, 5), (12, 5), (13, 5), (0, 3), (9, 4), (10, 4), (100, 30), (44, 10), (46, 10), (5, 2))
def round_to(number, step):
    """Round a number to the nearest multiple of a step."""
    rest = number % step
    if rest * 2 >= step:
        return number + step - rest
    return number - rest


@cases((10, 3), (9, 3), (1, 5), (0, 4), (16, 5), (100, 7), (8, 8), (23, 10), (50, 25), (11, 2))
def pages_needed(items, size):
    """Count the pages that hold a number of items."""
    pages = items // size
    if items % size > 0:
        pages += 1
    return pages


@cases((200, 10), (50, 0), (80, 25), (99, 50), (10, 100), (120, 5), (75, 20), (40, 15), (1000, 1), (60, 33))
def discounted(price, percent):
    """Take a percentage off a price."""
    saved = price * percent / 100
    return round(price - saved, 2)


@cases((1000, 5, 1), (1000, 5, 2), (500, 0, 4), (200, 10, 3), (100, 50, 2), (0, 7, 5), (2500, 4, 2), (80, 25, 1), (640, 50, 3),
       (300, 3, 0))
def savings(amount, percent, years):
    """Let an amount grow by a percentage every year."""
    for year in range(years):
        interest = amount * percent / 100
        amount += interest
    return round(amount, 2)


@cases((87, [1, 5, 10, 25]), (3, [1, 5]), (0, [1]), (30, [25, 5]), (41, [1, 10, 25]), (99, [1, 5, 10, 50]), (18, [2, 5]),
       (60, [20, 50, 10]), (7, [1, 2, 4]), (11, [1, 5]))
def make_change(amount, coins):
    """Pay an amount with the largest coins first."""
    paid = []
    for coin in sorted(coins, reverse=True):
        while amount >= coin:
            paid.append(coin)
            amount -= coin
    return paid


@cases(([1, 2, 3],), ([],), ([5],), ([2, -1, 4],), ([0, 3],), ([1.5, 2],), ([7, 7],), ([10, 1, 1],), ([3, 3, 3],), ([-2, -2],))
def product(numbers):
    """Multiply all numbers of a list."""
    result = 1
    for number in numbers:
        result *= number
    return result


@cases(2024, 1900, 2000, 2023, 1600, 2100, 1996, 4, 1800, 2018)
def is_leap(year):
    """Tell if a year has a leap day."""
    if year % 400 == 0:
        return True
    if year % 100 == 0:
        return False
    return year % 4 == 0


@cases(10, 2, 1, 20, 30, 3, 5, 11, 17, 25)
def primes_below(limit):
    """List the primes below a limit."""
    primes = []
    for number in range(2, limit):
        if all(number % prime != 0 for prime in primes):
            primes.append(number)
    return primes
