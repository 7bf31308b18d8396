"""Yes or no: short questions about texts, numbers and lists."""

from inloop.build.starter.library import cases


@cases([1, 2, 3], [3, 2, 1], [], [5], [1, 1], [1, 3, 2], [-2, 0, 4], [2, 2, 3], [0, 10, 11, 12], [4, 5, 5], [9, 8])
def keeps_rising(numbers):
    """Tell if every number is higher than the one before."""
    for before, after in zip(numbers, numbers[1:]):
        if before >= after:
            return False
    return True


@cases("()", "(", ")", ")(", "", "(())", "()()", "())(", "(()", "(()())", "())")
def brackets_close(text):
    """Tell if round brackets open and close in order, in a text that holds nothing else."""
    depth = 0
    for letter in text:
        depth += 1 if letter == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@cases([1, 1, 2], [1, 2, 1], [], [3], [2, 3, 3], ["a", "b", "b", "c"], [0, 0], ["x", "y"], [5, 4, 5, 4], [7, 8, 8, 9], "hello", "world")
def has_equal_neighbours(items):
    """Tell if two equal items stand side by side."""
    for index in range(1, len(items)):
        if items[index] == items[index - 1]:
            return True
    return False


@cases(0, 1, 2, 4, 8, 9, -4, 15, 16, -1, 49, 50)
def is_square_of_whole(number):
    """Tell if a number is the square of a whole one."""
    if number < 0:
        return False
    root = round(number**0.5)
    return root * root == number


@cases([1, -1], [1, 2], [], [0], [0, 0], [3, -2, 2], [-5, 4, 5], [-1, -2], [6, 7, -8], [-3, 0, 3], [0, 9])
def has_opposites(numbers):
    """Tell if a number stands with its negative, zero aside."""
    for number in numbers:
        if number > 0 and -number in numbers:
            return True
    return False


@cases(["apple", "ant"], ["apple", "Ant"], ["ant", "bee"], [], ["x"], ["Sun", "sea", "sky"], ["one", "two", "ten"], ["", "a"], ["Ben", "Bo"], ["cat", "dog", "cow"], ["tea", "tin"])
def all_start_alike(words):
    """Tell if there are words and all start with the same letter, in capitals or not."""
    starts = {word[:1].lower() for word in words}
    return len(starts) == 1


@cases([True, True, False], [True, False], [], [True], [False, False], [True, None, True], [None, None], [True, False, True, False], [False, False, True], [True, True], [True, None, None], [None, True])
def vote_carries(votes):
    """Tell if more are for it than against, of two or more."""
    agreed = votes.count(True)
    against = votes.count(False)
    return agreed > against and agreed + against >= 2


@cases([1, -1], [1, 2], [], [3], [2, -3, 4], [-1, 5, -2, 6], [1, -1, -1], [0, 1], [-4, 4, 4], [-7, 8], [5, 0, -5])
def alternates_in_sign(numbers):
    """Tell if plus and minus take turns all along, in a list of two or more."""
    for left, right in zip(numbers, numbers[1:]):
        if left * right >= 0:
            return False
    return len(numbers) > 1


@cases(([1, 2, 3], 6), ([4, 1], 6), ([], 0), ([3, 3], 6), ([5, 5, 5], 12), ([2, 2, 2, 2], 7), ([10], 20), ([10], 19), ([1, 1], 1), ([4, 4, 2], 10), ([6, 1, 1], 11))
def costs_are_fair(costs, limit):
    """Tell if the sum is within a limit and no cost is over half of that limit."""
    total = sum(costs)
    highest = max(costs, default=0)
    return total <= limit and highest * 2 <= limit


@cases(("cat", "tack"), ("book", "bok"), ("", "abc"), ("dog", "dg"), ("noon", "noon"), ("see", "eels"), ("eel", "elm"), ("abc", ""), ("tot", "tto"), ("all", "lab"), ("red", "deer"))
def can_lay_word(word, letters):
    """Tell if a word can be laid out of the given letters."""
    for letter in word:
        if word.count(letter) > letters.count(letter):
            return False
    return True


@cases([1, 2, 3], [2, 2], [], [5], [1, 9, 1], [1, 2, 2, 1], [3, 1, 1, 4], [4, 0, 7, 1, 3], [6, 5], [0, 2, 1, 1], [1, 1, 5, 3])
def halves_weigh_same(numbers):
    """Tell if both halves have one sum, the middle left out."""
    half = len(numbers) // 2
    left = sum(numbers[:half])
    right = sum(numbers[len(numbers) - half :])
    return left == right


@cases(("onion", 2), ("Anna", 1), ("abc", 1), ("", 1), ("ab", 2), ("Tomato", 2), ("edited", 2), ("church", 2), ("aa", 1), ("x", 1), ("Hothot", 3), ("level", 2))
def ends_as_it_starts(text, size):
    """Tell if a text longer than the size ends as it starts, in capitals or not."""
    head = text[:size].lower()
    tail = text[-size:].lower()
    return len(text) > size and head == tail


@cases(["ab", "cd"], ["a"], [], ["abc", "de", "f"], ["ab"], ["abc", "def", "ghi"], ["x", "y"], ["", ""], [[1, 2], [3, 4]], [[1], [2, 3]], ["ab", "c"])
def rows_form_square(rows):
    """Tell if there are rows, and as many as each one is long."""
    height = len(rows)
    for row in rows:
        if len(row) != height:
            return False
    return height > 0
