"""Choosing from lists: the ones that fit, without the ones that do not."""

from inloop.build.starter.library import cases


@cases(([1, 5, 9], 3), ([2, 4], 4), ([], 1), ([7, 8], 0), ([3, 3, 4], 3), ([-5, -1], -3), ([10], 10), ([0, 6, 2], 1), ([1, 2, 12], 9), ([4, 1], -2))
def first_above(numbers, limit):
    """Give the place of the first number over a limit, then the number."""
    for index, number in enumerate(numbers):
        if number > limit:
            return [index, number]
    return []


@cases([1, 2, 3], [4, 6, 7], [1, 3], [], [8], [0, 5], [2, -4, 9], [10, 11, 12], [7, 6, 5, 3], [5, 9, 1])
def last_even(numbers):
    """Find the last even number of a list."""
    found = None
    for number in numbers:
        if number % 2 == 0:
            found = number
    return found


@cases(([1, 2, 3, 4, 5, 6, 7], 0), (["a", "b", "c", "d", "e"], 1), ([], 2), ([9, 8, 7, 6], 0), ([1, 2], 1), ([5, 6, 7, 8, 9, 10], 2), (["x"], 0), ([4, 3, 2, 1], 3), ([0, 2, 4, 6, 8], 1), (["p", "q"], 4))
def every_third_from(items, start):
    """Keep every third item from the start on."""
    kept = []
    for index, item in enumerate(items):
        if index >= start and (index - start) % 3 == 0:
            kept.append(item)
    return kept


@cases((["Ann", "bob"], ["ANN"]), (["x", "Y"], ["y"]), ([], ["a"]), (["a", "b"], []), (["Tea", "tea"], ["tea"]), (["red", "Blue"], ["blue", "green"]), (["one"], ["two"]), (["K", "l", "M"], ["k", "M"]), (["up"], ["UP"]),
       (["a", "B", "c"], ["b", "C"]))
def without_names(words, unwanted):
    """Leave out the unwanted words in capitals or not."""
    hidden = [word.lower() for word in unwanted]
    return [word for word in words if word.lower() not in hidden]


@cases([3, 1, 2], [5, 5, 7], [4], [], [9, 8], [-1, -4, 0], [2, 2], [10, 30, 20, 5], [0, 6, 3], [7, 1, 1])
def smallest_two(numbers):
    """List the two smallest numbers, the smaller one first."""
    rest = list(numbers)
    if len(rest) < 2:
        return rest
    low = min(rest)
    rest.remove(low)
    return [low, min(rest)]


@cases((["a", "abc", "ab"], 3), (["tree", "oak"], 5), ([], 4), (["long", "word"], 4), (["one", "two"], 3), (["pear", "fig", "plum"], 6), (["", "b"], 1), (["sun", "moon"], 4), (["abcde"], 9), (["up", "down", "on"], 2))
def longest_up_to(words, limit):
    """Pick the first longest word of at most so many letters."""
    longest = ""
    for word in words:
        if len(longest) < len(word) <= limit:
            longest = word
    return longest


@cases(["ab", "c", "d"], ["one", "two"], [], ["tree", "oak", "elm"], ["x"], ["aa", "b", "cc"], ["up", "down", "on"], ["abc", "de", "f"], ["red", "blue", "tan"], ["go", "stop"])
def last_shortest(words):
    """Pick the last of the shortest words."""
    shortest = None
    for word in words:
        if shortest is None or len(word) <= len(shortest):
            shortest = word
    return shortest


@cases(([1, 2, 3, 4, 5], 3), ([1, 2, 3, 4], 2), ([], 2), ([7], 1), ([1, 2], 5), (["a", "b", "c", "d"], 1), ([9, 8, 7], 0), ([5, 6, 7, 8, 9], 4), (["x", "y", "z"], 1), ([4, 3, 2, 1, 0, 6], 2))
def middle_items(items, count):
    """Keep so many items from the middle of a list."""
    extra = len(items) - count
    if extra <= 0:
        return items
    start = extra // 2
    return items[start:start + count]


@cases(([1, 2, 3, 4, 5], 2), ([1, 2, 3], 0), ([7], 0), (["a", "b", "c", "d"], 3), ([4, 5, 6, 7], 1), ([1, 2], 1), ([9, 8, 7, 6, 5, 4], 4), (["x", "y", "z"], 2), ([], 0), ([3, 2, 1, 0, 8], 1))
def drop_around(items, spot):
    """Leave out an item and the ones next to it."""
    kept = []
    for index, item in enumerate(items):
        gap = abs(index - spot)
        if gap > 1:
            kept.append(item)
    return kept


@cases(([1, 5, 9], 6), ([4, 4, 2], 4), ([], 3), ([7, 8], 5), ([-3, -1, 2], 0), ([10, 20, 30], 30), ([6], 7), ([3, 1, 2], 3), ([0, 11, 8], 9), ([5], 5))
def closest_below(numbers, limit):
    """Find the largest number under a limit."""
    best = None
    for number in numbers:
        if number < limit and (best is None or number > best):
            best = number
    return best


@cases(([1, 2, 3, 4], 6), ([5, 1], 4), ([], 3), ([2, 2, 2], 4), ([10, 1], 10), ([3, 4, 5], 20), ([1, 1, 1, 1], 3), ([6, 3, 2], 8), ([0, 7], 0), ([4, 9, 1], 5))
def take_while_affordable(prices, budget):
    """Keep the first prices that a budget can pay."""
    kept = []
    for price in prices:
        budget -= price
        if budget < 0:
            break
        kept.append(price)
    return kept


@cases([3, 1, 2], [5, 5, 7, 6], [4], [1, 2], [9, 0, 4, 9], [-1, -4, -2], [2, 8, 2, 5, 8], [10, 30, 20, 15], [6, 6], [])
def without_extremes(numbers):
    """Leave out the smallest and the largest numbers."""
    if not numbers:
        return []
    low = min(numbers)
    high = max(numbers)
    return [number for number in numbers if low < number < high]
