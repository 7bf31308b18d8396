"""Lists and dictionaries."""

from inloop.build.starter.library import cases


@cases(([1, 2, 2, 3, 1],), ([],), (["a", "a"],), ([3, 2, 1],), ([0, 0, 0, 1],), (["x", "y", "x", "z"],), ([5],), ([1, 1, 2, 2],),
       ([True, False, True],), ([9, 8, 9, 8, 7],))
def unique(items):
    """Leave out what was there before and keep the order."""
    seen = set()
    out = []
    for item in items:
        if item not in seen:
            seen.add(item)
            out.append(item)
    return out


@cases(([1, 2, 3, 4, 5], 2), ([], 3), ([1], 1), ([1, 2, 3], 3), ([1, 2, 3, 4], 3), (["a", "b"], 1), ([7, 8, 9], 5),
       ([0, 1, 2, 3, 4, 5], 4), ([1, 2, 3, 4, 5, 6], 2), (["x", "y", "z"], 2))
def chunks_of(items, size):
    """Cut a list into pieces of a size."""
    pieces = []
    for start in range(0, len(items), size):
        pieces.append(items[start : start + size])
    return pieces


@cases(([[1, 2], [3]],), ([],), ([[], [1]],), ([["a"], ["b", "c"]],), ([[1], [2], [3]],), ([[0, 0], []],), ([[5, 6, 7]],),
       ([[], []],), ([[1, 2], [], [3, 4]],), ([["x"]],))
def flatten(lists):
    """Put the items of several lists into one."""
    out = []
    for part in lists:
        for item in part:
            out.append(item)
    return out


@cases((["ant", "bee", "ape"],), ([],), (["x"],), (["bob", "bill", "al"],), (["aa", "ab", "ba"],), (["one", "two", "three"],),
       (["cat", "dog", "cow", "duck"],), (["up", "us"],), (["A", "a"],), (["kiwi", "lime", "kale"],))
def group_by_first(words):
    """Collect words under their first letter."""
    groups = {}
    for word in words:
        letter = word[0]
        if letter not in groups:
            groups[letter] = []
        groups[letter].append(word)
    return groups


@cases((["a", "b", "a"],), ([],), ([1, 1, 1],), (["x", "y"],), ([0, 1, 0, 1, 0],), (["up", "up", "down"],), ([2],), (["b", "a", "b", "b"],),
       ([3, 3, 4],), (["q", "r", "s", "r"],))
def count_items(items):
    """Count how often each item is there."""
    counts = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return counts


@cases(({"a": 1, "b": 2},), ({},), ({"x": "y"},), ({1: "one", 2: "two"},), ({"k": 0},), ({"p": 3, "q": 4, "r": 5},), ({"n": "m"},),
       ({10: 20},), ({"first": 1, "last": 9},), ({"u": "v", "w": "z"},))
def invert(mapping):
    """Swap the keys and values of a dictionary."""
    out = {}
    for key, value in mapping.items():
        out[value] = key
    return out


@cases(({"a": 1}, {"b": 2}), ({"a": 1}, {"a": 2}), ({}, {}), ({"x": 5, "y": 1}, {"x": 2}), ({}, {"k": 3}), ({"p": -1}, {"p": 1}),
       ({"m": 2, "n": 3}, {"n": 4, "o": 5}), ({"q": 7}, {}), ({"a": 0}, {"a": 9}), ({"u": 1, "v": 2}, {"v": 2, "u": 1}))
def merge_counts(first, second):
    """Add up two dictionaries of counts."""
    merged = dict(first)
    for key in second:
        merged[key] = merged.get(key, 0) + second[key]
    return merged


@cases(({"a": 1, "b": 2}, ["a"]), ({"a": 1}, ["z"]), ({}, ["x"]), ({"k": 0, "m": 1}, ["m", "k"]), ({"p": 1, "q": 2}, []),
       ({"n": None, "o": 3}, ["n"]), ({"x": 1, "y": 2, "z": 3}, ["y", "w"]), ({"u": 5}, ["u"]), ({"c": 7, "d": 8}, ["d"]),
       ({"e": 4, "f": 6}, ["f", "e", "g"]))
def pick(mapping, keys):
    """Keep only some keys of a dictionary."""
    out = {}
    for key in keys:
        if key in mapping:
            out[key] = mapping[key]
    return out


@cases(([1, 2, 3, 4], 1), ([1, 2, 3], 5), ([], 2), (["a", "b", "c"], 2), ([1, 2, 3, 4, 5], 0), ([7, 8], 1), ([9], 3),
       ([4, 5, 6, 7], 3), (["x", "y", "z"], 4), ([0, 1, 2], 3))
def rotate(items, steps):
    """Move items from the front of a list to its end."""
    if not items:
        return []
    cut = steps % len(items)
    return items[cut:] + items[:cut]


@cases(([1, 2, 3], [10, 20]), ([], []), (["a"], ["b", "c"]), ([1], [2]), ([1, 2], []), ([5, 6, 7, 8], [0]), (["x", "y"], ["p", "q"]),
       ([], [3, 4]), ([1, 3, 5], [2, 4, 6]), ([9], [8, 7, 6]))
def interleave(first, second):
    """Take items from two lists in turn; the longer one goes on."""
    out = []
    shorter = min(len(first), len(second))
    for index in range(shorter):
        out.append(first[index])
        out.append(second[index])
    return out + first[shorter:] + second[shorter:]


@cases(([1, 2, 3, 4],), ([],), ([5],), ([2, 4],), ([1, 3, 5],), ([0, -1, -2],), ([10, 11, 12],), ([7, 8, 7],), ([6, 6, 1],), ([9, 2, 9, 4],))
def split_even(numbers):
    """Part the even numbers of a list from the odd ones."""
    even, odd = [], []
    for number in numbers:
        if number % 2 == 0:
            even.append(number)
        else:
            odd.append(number)
    return even, odd


@cases(([3, 9, 2],), ([1],), ([],), ([5, 5],), ([-1, -7, -3],), ([0, 10, 20],), ([8, 6, 7],), ([4, 2, 9, 1],), ([100, 99],), ([2, 3, 3, 1],))
def largest_two(numbers):
    """Give the two largest numbers of a list, the larger one first."""
    ordered = sorted(numbers, reverse=True)
    if len(ordered) < 2:
        return ordered
    return ordered[:2]


@cases(([3, 1, 2], 2), (["a", "b"], "b"), ([], 1), ([5, 5, 5], 5), ([1, 2, 3], 9), (["x"], "x"), ([0, 1, 0, 1], 1), ([7, 8, 9], 7),
       (["p", "q", "r"], "r"), ([4, 6, 4, 6], 4))
def positions(items, wanted):
    """List the places at which an item stands."""
    found = []
    for index, item in enumerate(items):
        if item == wanted:
            found.append(index)
    return found


@cases(({"a": {"b": 1}}, "a.b"), ({"a": 1}, "a"), ({}, "x"), ({"a": {"b": {"c": 2}}}, "a.b.c"), ({"k": 5}, "k.m"), ({"p": {"q": 0}}, "p.z"),
       ({"x": {"y": "deep"}}, "x.y"), ({"m": {"n": 3}}, "m"), ({"u": {"v": 4}, "w": 1}, "w"), ({"r": {"s": [1]}}, "r.s"))
def lookup(mapping, path):
    """Follow a dotted path into nested dictionaries."""
    current = mapping
    for key in path.split("."):
        if not isinstance(current, dict) or key not in current:
            return None
        current = current[key]
    return current


@cases(([("a", 1), ("b", 2)],), ([],), ([("x", 1), ("x", 2)],), ([("k", 0)],), ([("p", 5), ("q", 6), ("p", 7)],), ([("m", 1), ("n", 1)],),
       ([(1, "one"), (2, "two"), (1, "uno")],), ([("z", 9)],), ([("u", 3), ("v", 4), ("v", 5)],), ([("c", 8), ("c", 8)],))
def to_lists(pairs):
    """Collect the values of pairs under their keys."""
    out = {}
    for key, value in pairs:
        out.setdefault(key, []).append(value)
    return out


@cases(([4, 1, 3],), ([],), ([2, 2],), ([9, 8, 7, 6],), ([1],), ([5, 0, 5, 1],), ([-1, -5, 3],), ([10, 2, 33],), ([3, 1, 2, 0],), ([6, 4],))
def bubble_sort(numbers):
    """Sort numbers by swapping neighbours."""
    out = list(numbers)
    for end in range(len(out) - 1, 0, -1):
        for index in range(end):
            if out[index] > out[index + 1]:
                out[index], out[index + 1] = out[index + 1], out[index]
    return out


@cases(([1, 3, 5, 7], 5), ([1, 3, 5, 7], 4), ([], 1), ([2], 2), ([2, 4, 6, 8, 10], 10), ([1, 2, 3], 0), ([5, 10, 15], 5), ([3, 6, 9], 12),
       ([1, 4, 9, 16, 25], 16), ([7, 8], 8))
def binary_search(numbers, wanted):
    """Find the place of a number in a sorted list, or minus one."""
    low, high = 0, len(numbers) - 1
    while low <= high:
        middle = (low + high) // 2
        if numbers[middle] == wanted:
            return middle
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@cases(({"ann": 3, "bob": 5}, 1), ({"x": 1, "y": 2, "z": 3}, 2), ({}, 1), ({"a": 9}, 3), ({"p": 4, "q": 8, "r": 6}, 2), ({"m": 0, "n": 7}, 1),
       ({"u": 5, "v": 1}, 2), ({"i": 2, "j": 9, "k": 4}, 1), ({"c": 1, "d": 3}, 0), ({"e": 8, "f": 2, "g": 6, "h": 4}, 3))
def best_names(scores, count):
    """Name those with the highest scores, the best one first."""
    ordered = sorted(scores, key=lambda name: scores[name], reverse=True)
    return ordered[:count]
