"""Letter by letter: vowels, cases, shifts and swaps in short texts."""

from inloop.build.starter.library import cases


@cases("banana", "Apple", "", "sky", "Onion", "queue", "E", "Tree", "Zürich", "idea", "UNDER", "rhythm")
def drop_later_vowels(word):
    """Keep the first letter and drop every vowel after it."""
    result = word[:1]
    for letter in word[1:]:
        if letter.lower() not in "aeiou":
            result += letter
    return result


@cases("abcd", "abc", "", "x", "hello", "ab", "python", "no on", "12345", "Swap", "level")
def swap_letter_pairs(text):
    """Swap each letter with its neighbour, pair by pair."""
    result = ""
    for start in range(0, len(text), 2):
        pair = text[start : start + 2]
        result += pair[::-1]
    return result


@cases("hello", "ABC", "", "a", "Hi you", "zigzag", "X1y2", "PYTHON", "ok", "mixed Case", "QQqq")
def alternate_case(text):
    """Write letters large and small in turn, the first one large."""
    result = ""
    for i, letter in enumerate(text):
        large = i % 2 == 0
        result += letter.upper() if large else letter.lower()
    return result


@cases(("a", 1), ("z", 1), ("m", 13), ("c", -3), ("x", 5), ("b", 0), ("q", 26), ("k", -1), ("y", 30), ("h", 7), ("e", -10))
def letter_after(letter, steps):
    """Find the letter some steps on, round from z to a."""
    start = ord("a")
    index = ord(letter) - start + steps
    return chr(start + index % 26)


@cases("abc", "Zoo", "", "a-b", "hello", "x y", "A1", "cat!", "Python", "12", "zz", "I am")
def letter_worth(word):
    """Add up the places of the letters in the alphabet."""
    total = 0
    for letter in word.lower():
        if letter.isalpha():
            total += ord(letter) - 96
    return total


@cases("balloon", "abc", "", "aaa", "Mississippi", "see", "bookkeeper", "x", "noon", "abab", "committee", "letter")
def doubled_letters(word):
    """List the letters that stand twice in a row."""
    found = []
    for first, second in zip(word, word[1:]):
        if first == second and first not in found:
            found.append(first)
    return found


@cases("banana", "abc", "", "hello", "Anna", "noon", "zigzag", "q", "mama mia", "letter", "Otto", "1231")
def letters_once(text):
    """Keep the letters that a text holds only once, large or small."""
    result = ""
    for letter in text:
        times = text.lower().count(letter.lower())
        if times == 1:
            result += letter
    return result


@cases(("cat", "tac"), ("abc", "xyz"), ("hello", "yellow"), ("", "a"), ("banana", "nab"), ("zoo", "oz"), ("tree", "street"), ("ab", ""), ("python", "typhoon"), ("salt", "last"), ("door", "rod"))
def letters_in_both(first, second):
    """Give the letters that two words share, from a to z."""
    common = ""
    for letter in sorted(first):
        if letter in second and letter not in common:
            common += letter
    return common


@cases("Hello", "ABC", "", "abc 1", "McDonald", "x-Y", "123", "USA today", "iPhone 5", "Q", "Oh No!")
def case_tally(text):
    """Count the large letters, the small ones and the rest."""
    large = sum(letter.isupper() for letter in text)
    small = sum(letter.islower() for letter in text)
    return [large, small, len(text) - large - small]


@cases("abc", "Hi", "", "x", "ZOO", "code", "aB", "mum", "Wave", "no", "XYZ")
def mumble_letters(text):
    """Say each letter once more than the last: A-Bb-Ccc."""
    parts = []
    for i, letter in enumerate(text):
        part = letter.upper() + letter.lower() * i
        parts.append(part)
    return "-".join(parts)


@cases("hello", "apple", "", "sky", "tree", "Ice", "strong", "UP", "rhythm", "school", "shrUB")
def first_vowel_place(word):
    """Find the place of the first vowel, or 0 if there is none."""
    for place, letter in enumerate(word.lower(), 1):
        if letter in "aeiou":
            return place
    return 0


@cases("word", "ab", "", "a", "hello", "noon", "xyz", "Python", "last", "1234", "to go")
def swap_end_letters(word):
    """Swap the first and the last letter of a word."""
    if len(word) < 2:
        return word
    first, last = word[0], word[-1]
    middle = word[1:-1]
    return last + middle + first
