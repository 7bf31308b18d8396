"""Spans with a start and an end."""

from inloop.build.starter.library import cases


@cases(([[1, 3], [2, 5]],), ([[1, 2], [4, 5]],), ([],), ([[5, 6], [1, 9]],), ([[1, 2], [2, 3]],), ([[0, 1]],), ([[7, 8], [3, 4], [3, 7]],), ([[1, 4], [2, 3]],), ([[4, 6], [0, 2], [1, 3]],), ([[1, 1], [1, 1]],))
def merge_spans(spans):
    """Unite spans that touch or overlap."""
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


@cases(((1, 5), (3, 8)), ((1, 2), (3, 4)), ((1, 3), (3, 5)), ((0, 9), (2, 4)), ((5, 6), (1, 5)), ((2, 7), (2, 7)), ((4, 9), (0, 6)), ((-3, 0), (-1, 2)), ((8, 9), (1, 2)), ((1, 10), (9, 20)))
def intersect(first, second):
    """Give the part that two spans share, or nothing."""
    start = max(first[0], second[0])
    end = min(first[1], second[1])
    if start >= end:
        return None
    return (start, end)


@cases(([(1, 3), (5, 6)],), ([],), ([(0, 10)],), ([(2, 2)],), ([(-1, 1), (4, 9)],), ([(1, 2), (2, 3), (3, 4)],), ([(7, 12)],), ([(0, 1), (10, 20)],), ([(5, 5), (6, 8)],), ([(3, 30)],))
def covered_length(spans):
    """Add up the lengths of spans that lie apart."""
    total = 0
    for start, end in spans:
        total += end - start
    return total


@cases(([(1, 3), (5, 7)], 0, 10), ([], 2, 4), ([(0, 5)], 0, 5), ([(2, 4)], 0, 4), ([(0, 1), (1, 2)], 0, 3), ([(3, 6), (8, 9)], 3, 9), ([(1, 2), (4, 5), (7, 8)], 1, 8), ([(5, 6)], 0, 6), ([(0, 2), (3, 9)], 0, 9), ([(4, 4)], 1, 6))
def gaps(spans, start, end):
    """List what sorted spans leave free between two ends."""
    free = []
    at = start
    for low, high in spans:
        if low > at:
            free.append((at, low))
        at = max(at, high)
    if at < end:
        free.append((at, end))
    return free


@cases(([(9, 10), (10, 11)],), ([(9, 11), (10, 12)],), ([],), ([(1, 2)],), ([(5, 8), (1, 3), (2, 4)],), ([(0, 5), (5, 9), (9, 10)],), ([(3, 7), (3, 4)],), ([(8, 9), (1, 2), (4, 5)],), ([(1, 10), (2, 3)],), ([(6, 6), (6, 7)],))
def has_clash(meetings):
    """Tell if two meetings overlap."""
    ordered = sorted(meetings)
    for before, after in zip(ordered, ordered[1:]):
        if after[0] < before[1]:
            return True
    return False


@cases(([(1, 4), (2, 5), (3, 6)],), ([(1, 2), (2, 3)],), ([],), ([(0, 10), (1, 2), (3, 4)],), ([(5, 6)],), ([(1, 9), (2, 8), (3, 7), (4, 6)],), ([(1, 3), (1, 3)],), ([(0, 1), (5, 9), (6, 7)],), ([(2, 4), (3, 5), (4, 6)],),
       ([(1, 5), (5, 9), (2, 6)],))
def rooms_needed(meetings):
    """Count the rooms that meetings need at their busiest time."""
    changes = []
    for start, end in meetings:
        changes.append((start, 1))
        changes.append((end, -1))
    busy = most = 0
    for time, change in sorted(changes):
        busy += change
        most = max(most, busy)
    return most


@cases(([1, 2, 3, 7, 8],), ([],), ([5],), ([1, 3, 5],), ([4, 5, 6, 7],), ([0, 1, 9],), ([10, 12, 13, 14, 20],), ([2, 3],), ([1, 2, 4, 5, 7, 8],), ([30, 31, 32],))
def number_spans(numbers):
    """Write sorted numbers as spans of neighbours."""
    spans = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return spans


@cases(([(0, "low"), (10, "mid"), (20, "high")], 15), ([(0, "a")], 0), ([(5, "x")], 4), ([(0, "low"), (10, "mid")], 10), ([], 3), ([(1, "p"), (2, "q"), (3, "r")], 9), ([(0, "e"), (50, "d"), (60, "c")], 55), ([(18, "adult")], 17),
       ([(0, "free"), (100, "paid")], 99), ([(2, "u"), (4, "v")], 4))
def level_of(levels, value):
    """Name the highest level that a value reaches."""
    name = None
    for start, label in levels:
        if value >= start:
            name = label
    return name


@cases((0, 10, 5), (0, 9, 3), (5, 5, 2), (1, 8, 3), (0, 1, 4), (10, 30, 10), (2, 3, 1), (0, 7, 2), (-4, 4, 4), (3, 11, 5))
def split_span(start, end, size):
    """Cut a span into parts of a size; the last one may be shorter."""
    parts = []
    while start < end:
        stop = min(start + size, end)
        parts.append((start, stop))
        start = stop
    return parts


@cases(([(1, 3), (2, 6), (4, 5)],), ([],), ([(0, 1)],), ([(5, 9), (1, 4), (4, 6)],), ([(1, 10), (2, 3), (4, 5)],), ([(0, 2), (2, 4), (4, 6)],), ([(3, 8), (1, 5)],), ([(1, 2), (1, 3), (1, 4)],), ([(6, 7), (0, 6), (7, 9)],), ([(2, 5), (5, 6), (1, 3)],))
def most_meetings(meetings):
    """Count the meetings that one person can attend."""
    count, free = 0, 0
    for start, end in sorted(meetings, key=lambda meeting: meeting[1]):
        if start >= free:
            count += 1
            free = end
    return count
