"""Averages and spreads."""

from inloop.build.starter.library import cases


@cases(([1, 2, 3],), ([],), ([5],), ([2, 4],), ([1, 1, 4],), ([0, 10],), ([-2, 2],), ([7, 8, 9, 10],), ([3, 3, 3],), ([1, 2],))
def mean(numbers):
    """Average a list of numbers; nothing averages to zero."""
    if not numbers:
        return 0.0
    return sum(numbers) / len(numbers)


@cases(([3, 1, 2],), ([4, 1, 3, 2],), ([5],), ([1, 2],), ([9, 9, 1],), ([0, 0, 10, 10],), ([7, 3, 5],), ([8, 2, 6, 4, 1],), ([-1, -3],), ([6, 1, 9, 4],))
def median(numbers):
    """Give the number in the middle of a list."""
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


@cases(([1, 2, 2],), (["a"],), ([3, 3, 1, 1, 1],), (["x", "y", "y"],), ([5, 6, 5],), ([0, 1, 1, 0, 1],), (["b", "b", "a"],), ([9, 8, 8, 9, 9],), ([4],), ([7, 2, 2],))
def mode(items):
    """Give what is there most often."""
    best, most = None, 0
    for item in items:
        count = items.count(item)
        if count > most:
            best, most = item, count
    return best


@cases(([1, 2, 3, 4],), ([5],), ([2, 2],), ([0, 10],), ([1, 3, 5],), ([-1, 1],), ([4, 8],), ([6, 6, 9],), ([1, 1, 1, 5],), ([3, 7, 7, 19],))
def variance(numbers):
    """Average the squared distance to the mean."""
    center = sum(numbers) / len(numbers)
    squares = [(number - center) ** 2 for number in numbers]
    return round(sum(squares) / len(numbers), 4)


@cases(([3, 9, 5],), ([1],), ([],), ([-4, 4],), ([7, 7],), ([10, 2, 8],), ([0, 100],), ([5, 6, 1],), ([-1, -9],), ([2, 30, 15],))
def spread(numbers):
    """Give the distance between the smallest and the largest number."""
    if not numbers:
        return 0
    return max(numbers) - min(numbers)


@cases(([1, 2, 3, 4], 50), ([10, 20, 30], 100), ([5], 0), ([3, 1, 2], 34), ([7, 8, 9, 10], 25), ([1, 2, 3, 4, 5], 80), ([4, 6], 75), ([9, 1, 5], 67), ([2, 4, 6, 8, 10], 20),
       ([11, 12, 13], 1))
def percentile(numbers, percent):
    """Give the number below which a share of the list lies."""
    ordered = sorted(numbers)
    index = (len(ordered) * percent + 99) // 100 - 1
    return ordered[max(index, 0)]


@cases(([1, 2], [3, 4]), ([5], [2]), ([], []), ([1, 0, 1], [2, 9, 4]), ([2, 2], [0.5, 1]), ([-1, 1], [3, 3]), ([10, 1], [1, 10]), ([4], [0]), ([1, 1, 1], [7, 8, 9]),
       ([3, 0], [5, 6]))
def dot(first, second):
    """Add up the products of two lists, place by place."""
    total = 0
    for left, right in zip(first, second):
        total += left * right
    return total


@cases(([80, 90], [1, 1]), ([50, 100], [3, 1]), ([70], [2]), ([], []), ([60, 80, 100], [1, 2, 1]), ([40, 90], [0, 5]), ([10, 20], [4, 6]), ([33, 66], [2, 1]),
       ([95, 85], [1, 3]), ([0, 50], [1, 4]))
def weighted_mean(values, weights):
    """Average values, each as often as its weight says."""
    total = 0
    for value, weight in zip(values, weights):
        total += value * weight
    if not weights:
        return 0.0
    return round(total / sum(weights), 3)


@cases(([2, 4, 10],), ([5],), ([],), ([0, 5],), ([3, 3],), ([-1, 1],), ([10, 20, 30],), ([7, 1, 4],), ([100, 50],), ([9, 6, 12, 3],))
def rescale(numbers):
    """Map numbers to the range from zero to one."""
    if not numbers:
        return []
    low, high = min(numbers), max(numbers)
    if low == high:
        return [0.0] * len(numbers)
    return [round((number - low) / (high - low), 3) for number in numbers]


@cases(([1, 2, 11], 5), ([], 10), ([0, 4, 5, 9, 10], 5), ([3], 2), ([7, 8, 9], 10), ([12, 25, 31, 14], 10), ([1, 1, 1], 1), ([6, 13, 20], 7), ([2, 3, 4, 5], 3),
       ([99, 100, 101], 100))
def histogram(numbers, width):
    """Count the numbers that fall into each bin of a width."""
    bins = {}
    for number in numbers:
        start = number // width * width
        bins[start] = bins.get(start, 0) + 1
    return bins


@cases(([1, 5, 100], 10), ([1, 2], 5), ([], 1), ([10, 11, 12, 50], 20), ([0, 0, 9], 4), ([-20, 1, 2], 8), ([3, 3, 3], 0), ([7, 30], 10), ([40, 42, 44, 90], 25),
       ([5, 6, 7, 30], 12))
def outliers(numbers, limit):
    """List the numbers that lie farther than a limit from the mean."""
    if not numbers:
        return []
    center = sum(numbers) / len(numbers)
    return [number for number in numbers if abs(number - center) > limit]


@cases(([90, 80, 90],), ([5],), ([],), ([1, 2, 3],), ([7, 7, 7],), ([10, 30, 20],), ([4, 9, 9, 1],), ([0, -1, 0],), ([50, 60, 40, 60],), ([8, 3, 5],))
def ranks(scores):
    """Give each score its rank, the best one first; equal scores share it."""
    ordered = sorted(scores, reverse=True)
    out = []
    for score in scores:
        out.append(ordered.index(score) + 1)
    return out


@cases((["yes", "no", "yes"], "yes"), ([], "x"), (["a"], "b"), (["up", "up"], "up"), ([1, 2, 2, 2], 2), (["t", "f", "f"], "t"), ([0, 0, 1, 1], 0), (["m", "n", "o"], "o"),
       ([5, 5, 5, 6], 6), (["p", "q"], "p"))
def share_of(items, wanted):
    """Tell what percentage of a list an item makes up."""
    if len(items) == 0:
        return 0.0
    count = items.count(wanted)
    return round(100 * count / len(items), 1)
