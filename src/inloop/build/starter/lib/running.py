"""Lists that grow as they go: totals, changes and peaks so far."""

from inloop.build.starter.library import cases


@cases(([1, 2, 3], 10), ([5, 5, 5], 8), ([], 3), ([4, -6, 2], 5), ([-1, -2], 4), ([9], 9), ([3, 3, -1, 4], 6), ([10, -3], 7), ([2, -5, 8], 6), ([0, 1, 0], 1))
def capped_totals(numbers, limit):
    """List running totals kept between 0 and a limit."""
    total = 0
    totals = []
    for number in numbers:
        total = max(0, min(total + number, limit))
        totals.append(total)
    return totals


@cases([3, 1, 4, 1, 5], [2, 2], [], [9, 8, 7], [-3, -5, -1], [1, 2, 3], [0], [6, 2, 8, 7], [4, 4, 5], [-2, 0, -7, 1])
def peaks_so_far(numbers):
    """List the highest number up to each place."""
    highs = []
    for number in numbers:
        if highs and highs[-1] > number:
            number = highs[-1]
        highs.append(number)
    return highs


@cases([3, 1, 4, 1, 5], [2, 2], [], [9, 8, 7], [1, 2, 3], [0], [6, 2, 8, 8], [-4, -1, -2], [5, 7, 6, 9], [-3, 0])
def record_places(numbers):
    """List where a number beats all before it."""
    places = []
    for index, number in enumerate(numbers):
        if index == 0 or number > max(numbers[:index]):
            places.append(index)
    return places


@cases(([1, 5], [2, 3]), ([4], [4, 6]), ([], [1]), ([7, 8, 9], [9, 8, 7]), ([0, 0], [-1, 1]), ([3, 2, 1], [1, 2]), ([5], [6]), ([-2, -4], [-3, -1]), ([10, 1], []), ([2, 6, 4], [5, 5, 5]))
def pairwise_maxima(first, second):
    """List the greater of each two; the longer list keeps its rest."""
    size = min(len(first), len(second))
    most = [max(pair) for pair in zip(first, second)]
    return most + first[size:] + second[size:]


@cases([3, 6, 9], [1, 2], [], [5], [4, 4, 10, 4], [0, 9, 0, 9], [10, 0, 20], [2, 8, 5, 2, 8], [-3, 0, 3], [7, 1, 1, 7])
def smooth_inner(numbers):
    """Average inner numbers with neighbours."""
    result = list(numbers)
    for i in range(1, len(numbers) - 1):
        total = sum(numbers[i - 1 : i + 2])
        result[i] = round(total / 3, 1)
    return result


@cases([4, 8], [1, 2, 3], [], [5], [10, 0, 2], [3, 3, 3], [-2, 6, 5], [0, 1, 1, 4], [9, 1, 5], [7, 2])
def means_so_far(numbers):
    """List the means up to each place."""
    total = 0
    means = []
    for index, number in enumerate(numbers):
        total += number
        means.append(round(total / (index + 1), 2))
    return means


@cases([5, 3, 6, 2], [1, 2, 3], [], [9, 7, 8], [4], [2, 10, 5], [6, 6, 1], [-1, -4, 0], [8, 0, 8, 3], [3, 2, 1])
def falls_from_peak(numbers):
    """Tell how far each number is below the peak so far."""
    falls = []
    for index in range(len(numbers)):
        peak = max(numbers[: index + 1])
        falls.append(peak - numbers[index])
    return falls


@cases(([1, 3, 6], 0), ([5, 5, 9], 5), ([], 2), ([10], 4), ([7, 4, 8], 1), ([2, 2, 2], 3), ([0, -3], 0), ([12, 20, 21], 10), ([6, 1], -2), ([3, 9, 9, 15], 3))
def undo_totals(totals, start):
    """Find the numbers that led to some running totals."""
    numbers = []
    before = start
    for total in totals:
        numbers.append(total - before)
        before = total
    return numbers


@cases([1, 2, 0, 3], [0, 0], [], [4, 5], [1, 0, 1, 1], [7, 0], [-1, 2, 0, 5, 5], [0, 3, 3], [2, 2, 2], [6, 0, 0, 1])
def totals_since_zero(numbers):
    """List the running totals; a zero starts them again."""
    total = 0
    out = []
    for number in numbers:
        total = total + number if number != 0 else 0
        out.append(total)
    return out


@cases("abab", "", "aaa", "xyz", "hello", "noon", "bb b", "level", "aab", "banana")
def tally_so_far(text):
    """Tell for each letter how often it has come by then."""
    tallies = []
    for index, letter in enumerate(text):
        seen = text[:index]
        tallies.append(seen.count(letter) + 1)
    return tallies


@cases([1, 2, 3], [5], [], [4, 0, -1], [2, 2, 2, 2], [10, -10], [0, 7], [3, 1, 6], [-5, 2, 8], [9, 9, 1])
def totals_to_come(numbers):
    """List for each place what is still to come after it."""
    rest = sum(numbers)
    out = []
    for number in numbers:
        rest -= number
        out.append(rest)
    return out


@cases(([8, 4, 0], 2), ([10, 20], 5), ([], 2), ([6], 3), ([0, 100, 0], 4), ([5, 5, 5], 2), ([9, 1, 3], 2), ([-4, 4, 8], 4), ([30, 0, 60], 10), ([7, 3], 1))
def drag_behind(numbers, factor):
    """Follow the numbers by a part of each gap."""
    level = 0
    levels = []
    for number in numbers:
        level += (number - level) / factor
        levels.append(round(level, 1))
    return levels
