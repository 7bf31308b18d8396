"""How many are there? Counting what fits a condition."""

from inloop.build.starter.library import cases


@cases([1, 2, 6], [5, 5], [], [0, 10, 10], [3], [-4, 4], [1, 1, 1, 9], [2, 4, 6, 8], [7, 7, 1], [10, 9, 8, -20])
def count_above_mean(numbers):
    """Count the numbers that are over their mean."""
    if not numbers:
        return 0
    average = sum(numbers) / len(numbers)
    above = [number for number in numbers if number > average]
    return len(above)


@cases("aab", "abc", "", "aaa", [1, 1, 2, 2], [0], "hello", [3, 3, 3, 3], "aabbcc", [1, 2, 1])
def equal_neighbours(items):
    """Count the items that equal the one before them."""
    count = 0
    for index in range(1, len(items)):
        if items[index] == items[index - 1]:
            count += 1
    return count


@cases([1, -1, 2], [3, 4], [], [-1, 0, 1], [0, 0], [5, -5], [-2, -3, 4, 0, -1], [1, 0, 2], [-1, 1, -1, 1], [0, -7, 7])
def sign_changes(numbers):
    """Count the changes of sign and pass over zeros."""
    values = [number for number in numbers if number != 0]
    pairs = zip(values, values[1:])
    return sum(a * b < 0 for a, b in pairs)


@cases(("a bb ccc", 2, 3), ("one two", 3, 3), ("", 1, 5), ("to be or not", 2, 2), ("hi, you", 2, 2), ("end.", 3, 4), ("x y z", 1, 1), ("long words here", 5, 9), ("no! yes!", 3, 5), ("tree oak", 4, 8))
def words_of_length(text, low, high):
    """Count the words with a length from low to high."""
    count = 0
    for word in text.split():
        size = len(word.strip(",.!"))
        if low <= size <= high:
            count += 1
    return count


@cases(([1, 5, 9], 2, 8), ([2, 8], 2, 8), ([], 0, 1), ([0, 1, 3, 12], 3, 10), ([-5, 5], -5, 4), ([7, 7], 8, 9), ([4], 4, 4), ([1, 2, 3, 4, 5], 2, 3), ([10, 20, 30], 0, 10), ([6, 0], 1, 6))
def count_outside(numbers, low, high):
    """Count the numbers that lie under low or over high."""
    count = 0
    for number in numbers:
        if number < low or number > high:
            count += 1
    return count


@cases([3, 1, 2], [1, 2, 3], [], [5, 5, 6], [4, 0, 4, 0, 4], [9], [2, 1, 1, 2], [8, 3, 7, 2, 5], [6, 5], [0, -1, 0])
def count_dips(numbers):
    """Count the numbers under both neighbours."""
    dips = 0
    for i in range(1, len(numbers) - 1):
        side = min(numbers[i - 1], numbers[i + 1])
        if numbers[i] < side:
            dips += 1
    return dips


@cases("Ann and Bob", "hello", "", "The End", "a B c", "USA Today", "no One", "New York City", "x", "iPhone Max")
def count_capital_words(text):
    """Count the words that start with a big letter and go on in small ones."""
    count = 0
    for word in text.split():
        rest = word[1:]
        if word[0].isupper() and rest.islower():
            count += 1
    return count


@cases("a1", "abc", "", "1a2", "x9y8", "room12", "3d", "ab12cd3", "7", "b2b c4")
def letters_before_digits(text):
    """Count the letters with a digit right after them."""
    count = 0
    for letter, after in zip(text, text[1:]):
        if letter.isalpha() and after.isdigit():
            count += 1
    return count


@cases(([1, 4, 5], 2), ([3, 2, 1], 1), ([], 1), ([0, 2, 4], 2), ([5], 0), ([1, 10, 0, 10], 9), ([7, 7, 8], 1), ([-3, 0, 3], 4), ([2, 6, 3, 9], 4), ([1, 2, 3, 4], 1))
def count_big_rises(numbers, least):
    """Count the steps up by at least so much."""
    rises = 0
    for before, after in zip(numbers, numbers[1:]):
        gap = after - before
        if gap >= least:
            rises += 1
    return rises


@cases(([1, 2, 3], 4), ([2, 2, 2], 4), ([], 0), ([5], 10), ([0, 0], 0), ([1, 5, 3, 3], 6), ([-1, 1, 2], 1), ([4, 6, 4], 10), ([7, 1], 9), ([1, 1, 1, 1], 2))
def count_pairs_with_sum(numbers, wanted):
    """Count the pairs that add up to a sum."""
    pairs = 0
    for i, number in enumerate(numbers):
        others = numbers[i + 1:]
        pairs += others.count(wanted - number)
    return pairs


@cases(("hello", "world"), ("abc", "xyz"), ("", "a"), ("aab", "aba"), ("tree", "eel"), ("otto", "tot"), ("same", "same"), ("book", "look"), ("x", "xxx"), ("noon", "moon"))
def count_shared_letters(text, other):
    """Count the letters that two words share."""
    hits = 0
    rest = list(other)
    for letter in text:
        if letter in rest:
            rest.remove(letter)
            hits += 1
    return hits


@cases("x = 1\n# one", "", "a\n\nb", "  # note\ny", "# a\n# b", "one", "a # b\nc", "\n \n", "f()\n  g()\n# h", "   z")
def count_code_lines(text):
    """Count the lines with more than a comment."""
    count = 0
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith("#"):
            count += 1
    return count
