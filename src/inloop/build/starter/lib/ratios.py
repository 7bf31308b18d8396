"""Percentages, shares, averages and mixtures."""

from inloop.build.starter.library import cases


@cases((100, 120), (50, 40), (0, 5), (80, 80), (30, 45), (0, 0), (200, 50), (8, 9), (64, 16), (3, 10))
def percent_change(before, after):
    """Tell by how many percent a number changed, or None from zero."""
    if before == 0:
        return None
    change = after - before
    return round(change * 100 / before, 1)


@cases((10, 20), (20, 10), (5, 5), (0, 0), (3, 7), (100, 90), (0, 8), (12, 15), (40, 60), (1, 9))
def percent_apart(first, second):
    """Give a difference in percent of the average."""
    gap = abs(first - second)
    middle = (first + second) / 2
    if middle == 0:
        return 0.0
    return round(gap * 100 / middle, 1)


@cases([1, 1, 2], [5], [0, 0], [], [3, 7], [10, 20, 30], [1, 2], [0], [8, 0, 2], [6, 6, 6], [45, 5])
def shares_in_percent(amounts):
    """Turn amounts into percentages."""
    total = sum(amounts)
    shares = []
    for amount in amounts:
        share = amount * 100 / max(total, 1)
        shares.append(round(share, 1))
    return shares


@cases([(1, 10), (1, 20)], [(2, 40), (3, 0)], [(5, 12)], [(100, 5), (50, 8)], [(1, 96), (2, 0)], [(3, 30), (7, 60)], [(4, 25), (4, 75)], [(10, 1), (5, 4)], [(2, 50), (6, 10)], [(1, 3), (1, 6), (1, 12)])
def strength_of_mix(parts):
    """Give the strength of a mix of (amount, percent) parts."""
    total, pure = 0, 0
    for amount, percent in parts:
        total += amount
        pure += amount * percent
    return round(pure / total, 1)


@cases((10, 40, 20), (5, 96, 70), (1, 10, 10), (2, 30, 45), (100, 6, 5), (8, 50, 12), (3, 20, 15), (50, 12, 40), (20, 75, 25), (4, 9, 6))
def water_to_add(amount, percent, wanted):
    """Tell how much water brings a mix down to the wanted percent."""
    total = amount * percent / wanted
    extra = total - amount
    return round(max(extra, 0), 2)


@cases((4, 6), (10, 5), (7, 3), (16, 9), (1920, 1080), (12, 12), (1, 8), (30, 45), (2, 2), (21, 14))
def ratio_in_lowest_terms(first, second):
    """Shorten a ratio as far as it goes."""
    factor = min(first, second)
    while first % factor or second % factor:
        factor -= 1
    return [first // factor, second // factor]


@cases([3, -1, 5], [], [-2, -4], [0, 6], [1, 2, 2], [10], [0, 0], [7, 8, -9, 4], [1, 0, 1], [20, -20, 5, 6])
def average_of_positive(numbers):
    """Average the numbers above zero."""
    kept = [value for value in numbers if value > 0]
    if not kept:
        return None
    return round(sum(kept) / len(kept), 2)


@cases((120, 20), (90, -10), (50, 0), (33, 10), (0, -100), (75, 50), (12, -40), (200, 300), (5, -120), (19, 19), (64, -100))
def before_percent(amount, percent):
    """Find what an amount was before it changed by a percentage."""
    factor = 100 + percent
    if factor <= 0:
        return None
    return round(amount * 100 / factor, 2)


@cases((100, [10, 10]), (50, [-20]), (80, []), (200, [50, -50]), (10, [100, 100]), (60, [5]), (40, [-25, 20]), (1000, [1, 2, 3]), (9, [-100, 30]), (300, [-10, 0]))
def after_percents(value, changes):
    """Apply changes in percent one after the other."""
    result = value
    for change in changes:
        result += result * change / 100
    return round(result, 2)


@cases([1, 2, 3, 10], [5, 5], [1, 9], [2, 4, 6], [0, 0, 0, 8], [7], [1, 8, 9, 10], [3, 3, 9, 9, 9], [4, 5, 6, 7, 8], [2, 2, 5])
def percent_above_average(numbers):
    """Tell what percentage exceeds the average."""
    size = len(numbers)
    middle = sum(numbers) / size
    above = [value for value in numbers if value > middle]
    return round(len(above) * 100 / size)


@cases([60, 40], [10], [30, 60, 90], [5, 0], [2, 8], [100, 50, 25], [4, -4], [12, 12], [1, 3, 6], [80, 20, 0])
def average_speed_of_legs(rates):
    """Average the speeds on legs of one length."""
    total = 0
    for rate in rates:
        if rate <= 0:
            return None
        total += 1 / rate
    return round(len(rates) / total, 2)


@cases(({"a": 1, "b": 3}, 8), ({"x": 2}, 5), ({}, 4), ({"oil": 3, "salt": 1}, 10), ({"r": 1, "g": 1, "b": 1}, 9), ({"tea": 2, "milk": 3}, 1), ({"k": 5, "m": 0}, 20), ({"p": 4, "q": 6}, 15), ({"sand": 7, "lime": 2}, 90), ({"u": 8, "v": 2}, 100))
def mix_for_total(mix, wanted):
    """Scale a mix so that it adds up to a total."""
    total = sum(mix.values())
    result = {}
    for name, amount in mix.items():
        result[name] = round(amount * wanted / total, 1)
    return result
