"""Finding and counting: places in texts and lists, nearest values, longest runs."""

from inloop.build.starter.library import cases


@cases(("a(b)c", "(", ")"), ("no marks", "(", ")"), ("<x><y>", "<", ">"), ("open(only", "(", ")"), ("", "[", "]"), (")a(b)", "(", ")"), ("say 'hi' now", "'", "'"), ("k{{v}}", "{{", "}}"), ("[]", "[", "]"), ("one--two--three", "--", "--"), ("<<tag>>", "<<", ">>"))
def text_between(text, opener, closer):
    """Give what stands between opener and next closer; None without an opener, empty without a closer."""
    start = text.find(opener)
    if start < 0:
        return None
    start += len(opener)
    end = text.find(closer, start)
    if end == -1:
        return ""
    return text[start:end]


@cases(([1, 2, 1, 3], 1), ([1, 2], 5), ([], 1), ([4, 4, 4], 4), ([7], 7), ([1, 2, 3], 1), ([0, 1, 0, 1], 0), (["a", "b", "a"], "a"), (["x", "y"], "y"), ([2, 9, 9, 2, 5], 9), ([3, 5, 6], 4))
def first_and_last_place(items, wanted):
    """Give the first and the last place of an item, counted from 1; 0 and 0 if it is not there."""
    first = last = 0
    for index, item in enumerate(items, 1):
        if item == wanted:
            if first == 0:
                first = index
            last = index
    return [first, last]


@cases(([1, 5, 9], 6), ([1, 4], 2), ([], 3), ([2, 4], 3), ([10, 20, 30], 26), ([4, 2], 3), ([-5, 5], 1), ([7], 100), ([8, 3, 12], 9), ([0, -3, 6], -2), ([1, 2, 3], 3))
def nearest_number(numbers, wanted):
    """Find the number nearest to a wanted one; of two the smaller."""
    if not numbers:
        return None
    best = numbers[0]
    for number in numbers[1:]:
        gap = abs(number - wanted)
        least = abs(best - wanted)
        if gap < least or (gap == least and number < best):
            best = number
    return best


@cases([1, 1, 2], [], [3], [1, 2, 2, 2, 1], [5, 5, 6, 6], [1, 2, 3], ["a", "b", "b"], [0, 0, 0, 1, 1], [4, 7, 7, 4, 4, 4], [9, 9, 8, 8, 8], [2, 2, 1, 2, 2])
def longest_equal_run(items):
    """Give the start and the length of the first longest run of equal items."""
    best = [0, 0]
    start = 0
    for index, item in enumerate(items):
        if item != items[start]:
            start = index
        size = index - start + 1
        if size > best[1]:
            best = [start, size]
    return best


@cases(("banana", "ana"), ("aaaa", "aa"), ("abc", "x"), ("", "a"), ("hello", "l"), ("abcabc", "abc"), ("Mississippi", "ss"), ("ab", "abc"), ("1211121", "121"), ("to be or not to", "to"), ("x", "x"))
def overlapping_places(text, part):
    """List all places of a part in a text, also those that overlap."""
    found = []
    start = text.find(part)
    while start >= 0:
        found.append(start)
        start = text.find(part, start + 1)
    return found


@cases([1, 2, 1], [1, 2, 3], [], [5, 5], ["a", "b", "b", "a"], [3, 1, 4, 1, 5, 3], [0, 1, 2, 0], ["x", "y", "z", "y"], [7, 8, 9, 9, 8], [2, 4, 6, 8, 2, 4], [1])
def first_repeat(items):
    """Find the first item that was there before, with how far back it was."""
    places = {}
    for index, item in enumerate(items):
        if item in places:
            distance = index - places[item]
            return (item, distance)
        places[item] = index
    return None


@cases(("banana", "a", 2), ("banana", "a", 4), ("hello", "l", 1), ("a,b,c,d", ",", 3), ("", "x", 1), ("xyxyx", "xy", 2), ("aaa", "a", 3), ("one", "o", 0), ("abab", "b", 2), ("path/to/file", "/", 2), ("aaaa", "aa", 2))
def place_of_nth(text, part, count):
    """Find where a part stands for the nth time, without overlaps; -1 if it does not."""
    at = -1
    start = 0
    while count > 0:
        at = text.find(part, start)
        if at < 0:
            break
        start = at + len(part)
        count -= 1
    return at


@cases(([1, 3, 5], 3), ([1, 3, 5], 4), ([], 2), ([2, 2, 2], 2), ([1, 2, 3], 9), ([5, 6], 1), ([1, 4, 4, 8], 4), ([10, 20, 30, 40], 35), ([7], 8), ([0, 1, 1, 2, 3], 2), ([3, 6, 9, 12, 15], 6))
def insertion_place(numbers, value):
    """Find where a value belongs in sorted numbers, before its equals."""
    low = 0
    high = len(numbers)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@cases(([1, 2, 3, 4], [2, 3]), ([1, 2], [2, 1]), ([], [1]), ([5], [5]), ([1, 1, 2, 1, 2], [1, 2]), ([3, 4], [3, 4, 5]), ([7, 8, 9], [9]), ([0, 1, 0, 1], [1, 0]), (["a", "b", "c"], ["b", "c"]), ([2, 2, 3], [2, 3]), ([6, 7], []))
def find_sublist(items, part):
    """Find the first place where a part stands in a list; -1 if it does not."""
    size = len(part)
    last = len(items) - size
    for start in range(last + 1):
        window = items[start : start + size]
        if window == part:
            return start
    return -1


@cases((["a", "x", "b"], "a", "b"), (["a", "b", "a"], "a", "b"), (["a"], "a", "b"), ([], "x", "y"), (["b", "c", "c", "a"], "a", "b"), (["a", "c", "c", "b", "c", "a"], "a", "b"), (["x", "y", "y", "x"], "y", "x"), (["p", "o", "o", "q", "p"], "p", "q"), (["k", "k", "l"], "k", "l"), (["s", "r", "r", "r", "t"], "s", "t"))
def nearest_distance(words, first, second):
    """Give the smallest distance between two words of a list; -1 if one is missing."""
    best = -1
    places = {}
    for index, word in enumerate(words):
        other = second if word == first else first
        if word in (first, second):
            places[word] = index
            gap = index - places.get(other, index)
            if gap > 0 and (best < 0 or gap < best):
                best = gap
    return best


@cases((["ab", "cd"], "d"), (["x"], "x"), ([], "a"), (["abc", "def"], "e"), (["aa", "aa"], "a"), (["..#", "#.."], "#"), (["12", "34", "56"], "5"), (["no"], "z"), (["p.q", "r.s", "t.u"], "u"), (["ABC", "CBA"], "C"), (["", "k"], "k"))
def find_in_grid(rows, wanted):
    """Find a letter in a grid: its row and column, counted from 1; an empty list if it is not there."""
    for row, line in enumerate(rows):
        column = line.find(wanted)
        if column >= 0:
            return [row + 1, column + 1]
    return []


@cases("abcabc", "aaaa", "", "abba", "hello", "pwwkew", "x", "abcdef", "dvdf", "tmmzuxt", "noon")
def longest_distinct_part(text):
    """Give the longest part of a text in which no letter stands twice."""
    best = ""
    part = ""
    for letter in text:
        if letter in part:
            cut = part.index(letter) + 1
            part = part[cut:]
        part += letter
        if len(part) > len(best):
            best = part
    return best


@cases([1, 1, 2], [1, 2], [], [3], [2, 2, 1, 1, 2], [1, 2, 3], ["a", "b", "a", "a"], [5, 6, 5, 6, 6], [4, 4, 5, 5], [7, 8, 7], [0, 0, 0, 9, 9])
def majority_item(items):
    """Find the item that makes up more than half of a list."""
    candidate = None
    count = 0
    for item in items:
        if count == 0:
            candidate = item
        count += 1 if item == candidate else -1
    hits = items.count(candidate)
    return candidate if hits * 2 > len(items) else None


@cases("(a(b)c)", "(x)(y)", "none", "", "((deep))", "(a", "b)", "f(g(1), h(2))", "(1 + (2 * (3)))", "()", "(p)(q(r))")
def innermost_parts(text):
    """List what stands in brackets that hold no other brackets."""
    found = []
    for piece in text.split("(")[1:]:
        end = piece.find(")")
        if end >= 0:
            part = piece[:end]
            found.append(part)
    return found


@cases(([1, 5, 9], 2, 8), ([2, 4, 6], 2, 6), ([], 0, 1), ([3, 3, 3], 3, 3), ([10, -1, 4], 0, 5), ([1, 2, 3, 4], 3, 9), ([7], 8, 9), ([5, 6, 7], 4, 6), ([0, 8, 2, 7], 1, 7), ([9, 1, 5, 3], 1, 3), ([4, 6], 7, 3))
def count_in_range(numbers, low, high):
    """Count the numbers within a range, below it and above it; the ends may come in any order."""
    below = above = inside = 0
    if low > high:
        low, high = high, low
    for number in numbers:
        if number < low:
            below += 1
        elif number > high:
            above += 1
        else:
            inside += 1
    return [inside, below, above]
