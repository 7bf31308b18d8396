"""Runs, windows and sums over lists."""

from inloop.build.starter.library import cases


@cases(([1, 2, 3],), ([],), ([5],), ([0, 0, 1],), ([-1, 1, -1],), ([10, 20],), ([3, 3, 3],), ([2, -2, 4],), ([7, 1, 0],), ([1, 4, 9, 16],))
def running_sum(numbers):
    """Give the sums of a list so far, one for each number."""
    sums = []
    total = 0
    for number in numbers:
        total += number
        sums.append(total)
    return sums


@cases(([1, 4, 9],), ([5],), ([],), ([3, 3],), ([10, 7, 1],), ([0, 5, 5, 6],), ([2, 1],), ([-1, 1, 4],), ([8, 6, 9, 9],), ([1, 2, 4, 7, 11],))
def differences(numbers):
    """Give the step from each number to the next one."""
    out = []
    for index in range(1, len(numbers)):
        out.append(numbers[index] - numbers[index - 1])
    return out


@cases(([1, 2, 3, 4], 2), ([1, 2], 3), ([], 1), ([5, 6, 7], 1), ([1, 2, 3], 3), (["a", "b", "c"], 2), ([9, 8, 7, 6, 5], 3), ([0], 1),
       ([4, 4, 4, 4], 4), (["x", "y", "z", "w"], 3))
def windows(items, size):
    """List all runs of neighbours of a size."""
    out = []
    for start in range(len(items) - size + 1):
        out.append(items[start : start + size])
    return out


@cases(([1, 2, 3, 4], 2), ([5, 5, 5], 3), ([10], 1), ([1, 3], 2), ([2, 4, 6, 8], 3), ([0, 10, 0, 10], 2), ([7, 7], 1), ([1, 2, 4, 8], 4),
       ([9, 0, 3], 3), ([6, 2, 4], 2))
def moving_average(numbers, size):
    """Average every run of neighbours of a size."""
    out = []
    for end in range(size, len(numbers) + 1):
        window = numbers[end - size : end]
        out.append(sum(window) / size)
    return out


@cases(([1, 2, 2, 5],), ([],), ([3],), ([2, 1],), ([1, 1, 1],), ([0, 5, 4],), ([-3, -2, 0],), ([9, 10, 11],), ([5, 6, 6, 4],), ([7, 3, 8],))
def is_sorted(numbers):
    """Tell if no number of a list is smaller than the one before it."""
    for index in range(len(numbers) - 1):
        if numbers[index] > numbers[index + 1]:
            return False
    return True


@cases(([1, 2, 0, 1, 2, 3],), ([],), ([5],), ([3, 2, 1],), ([1, 2, 3],), ([1, 1, 2],), ([4, 5, 1, 2],), ([0, 1, 0, 1, 2, 3, 0],), ([9, 9, 9],),
       ([2, 4, 6, 1, 3],))
def longest_rise(numbers):
    """Give the length of the longest run in which numbers grow."""
    if not numbers:
        return 0
    best = current = 1
    for before, after in zip(numbers, numbers[1:]):
        if after > before:
            current += 1
        else:
            current = 1
        best = max(best, current)
    return best


@cases(([1, -2, 3, 4],), ([-1, -2],), ([5],), ([2, -1, 2],), ([-3, 4, -1, 2],), ([0, 0],), ([1, 2, 3],), ([3, -5, 4],), ([-2, 1, -3, 4, -1, 2, 1, -5],),
       ([6, -7, 6, 1],))
def best_sum(numbers):
    """Give the largest sum of neighbours in a list."""
    best = current = numbers[0]
    for number in numbers[1:]:
        current = max(number, current + number)
        best = max(best, current)
    return best


@cases(([1, 2, 3], 5), ([1, 2], 9), ([], 0), ([4, 4], 8), ([0, 7, 3], 10), ([5, 1, 6, 2], 7), ([-1, 3, 1], 2), ([8], 8), ([2, 9, 4, 6], 13),
       ([3, 3, 5], 6))
def pair_with_sum(numbers, target):
    """Find the places of two numbers that add up to a target."""
    places = {}
    for index, number in enumerate(numbers):
        other = target - number
        if other in places:
            return [places[other], index]
        places[number] = index
    return []


@cases(([1, 3], [2, 4]), ([], [1]), ([5], []), ([1, 1], [1]), ([0, 9], [3, 5, 7]), ([2, 4, 6], [1]), ([7, 8], [1, 2]), ([-1, 1], [0]), ([3], [3]),
       ([1, 5, 9], [2, 5, 8]))
def merge_sorted(first, second):
    """Merge two sorted lists into one."""
    out = []
    i = j = 0
    while i < len(first) and j < len(second):
        if first[i] <= second[j]:
            out.append(first[i])
            i += 1
        else:
            out.append(second[j])
            j += 1
    return out + first[i:] + second[j:]


@cases(([1, 1, 2, 2, 2],), ([],), (["a"],), ([3, 3, 3],), ([1, 2, 1],), (["x", "x", "y", "x"],), ([0, 0, 5],), ([7, 8, 8],), ([4, 4, 4, 9, 9],), ([6],))
def runs(items):
    """List each item with the length of its run."""
    out = []
    for item in items:
        if out and out[-1][0] == item:
            out[-1] = (item, out[-1][1] + 1)
        else:
            out.append((item, 1))
    return out


@cases(([1, 2, 3, 4, 5], 2), ([1, 2, 3], 1), ([], 3), ([9], 4), (["a", "b", "c", "d"], 3), ([0, 1, 2, 3, 4, 5, 6], 4), ([5, 6], 2), ([7, 8, 9], 3),
       (["x", "y", "z"], 2), ([2, 4, 6, 8], 1))
def every_nth(items, step):
    """Keep the last item of every group of a size."""
    return items[step - 1 :: step]


@cases(([3, 0, 1], 4), ([], 1), ([1, 2], 3), ([0, 1, 3], 4), ([0, 2], 3), ([2, 0, 1], 3), ([0], 2), ([5, 3, 0, 1, 4], 6), ([1], 2), ([4, 0, 2, 1], 5))
def missing_number(numbers, count):
    """Find the first number from zero on that is not there."""
    present = set(numbers)
    for number in range(count):
        if number not in present:
            return number
    return count


@cases(([1, 5, 2],), ([3],), ([],), ([1, 2, 3],), ([4, 1, 4],), ([0, 9, 0, 8, 0],), ([5, 5],), ([2, 7, 7, 1],), ([6, 3, 8, 2, 9, 1],), ([1, 0, 1],))
def peaks(numbers):
    """List the numbers that are larger than both neighbours."""
    found = []
    for index in range(1, len(numbers) - 1):
        before, after = numbers[index - 1], numbers[index + 1]
        if numbers[index] > before and numbers[index] > after:
            found.append(numbers[index])
    return found


@cases(([1, 2, 3, 3], 2), ([1, 1, 1], 3), ([], 1), ([5, 6], 1), ([2, 2, 3, 3], 2), ([0, 0, 1], 2), ([4, 4, 4, 4], 4), ([7, 8, 9, 7], 2), ([1, 2, 1, 2, 1], 3),
       ([6], 2))
def repeated(items, times):
    """List what is there at least so many times."""
    counts = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return [item for item in counts if counts[item] >= times]


@cases(([0, 1, 0, 3],), ([],), ([1],), ([0, 0],), ([4, 0, 5],), ([0, 7],), ([2, 3],), ([0, 0, 1, 0, 2],), ([9, 0, 0, 8],), ([6, 0],))
def zeros_last(numbers):
    """Move the zeros of a list behind all others."""
    kept = [number for number in numbers if number != 0]
    zeros = len(numbers) - len(kept)
    return kept + [0] * zeros
