"""Words, lines and characters."""

from inloop.build.starter.library import cases


@cases("Hello World", "  two  words ", "One", "", "A-b C", "Keep CALM now", "x y z", "tab\tand space", "Ends. Here", " a")
def slug(title):
    """Join the words of a title with hyphens, in lower case."""
    words = title.strip().lower().split()
    return "-".join(words)


@cases("level", "Level", "abc", "", "No on", "aa", "ab", "race car", "xyzzyx", "a b", "Was it a saw")
def is_palindrome(text):
    """Tell if a text reads the same both ways, blanks and case aside."""
    letters = text.replace(" ", "").lower()
    left, right = 0, len(letters) - 1
    while left < right:
        if letters[left] != letters[right]:
            return False
        left += 1
        right -= 1
    return True


@cases("education", "", "sky", "AEIOU", "Queue up", "rhythm", "banana", "Why not", "ooo", "Ivy Apple")
def count_vowels(text):
    """Count the vowels of a text."""
    total = 0
    for letter in text.lower():
        if letter in "aeiou":
            total += 1
    return total


@cases(("hello world", 8), ("hi", 5), ("exactly", 7), ("longer text", 5), ("abc", 3), ("abcdef", 4), ("", 4),
       ("one two three", 10), ("wordy", 4), ("twelve chars", 11))
def shorten(text, limit):
    """Cut a text to a length and mark the cut with dots."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 3]
    return kept.rstrip() + "..."


@cases("hello world", "a", "", "two  blanks", "mixed CASE here", "x-ray tango", "the end", "iPhone case", "o k", "up AND down")
def title_case(text):
    """Give every word a capital letter."""
    out = []
    for word in text.split(" "):
        out.append(word[:1].upper() + word[1:].lower())
    return " ".join(out)


@cases("userName", "already_snake", "HTTPServer", "a", "", "parseJsonFile", "X", "getId", "lowerUp", "aB")
def snake_case(name):
    """Turn a camel case name into a snake case one."""
    out = ""
    for index, letter in enumerate(name):
        if letter.isupper() and index > 0:
            out += "_"
        out += letter.lower()
    return out


@cases("user_name", "a_b_c", "plain", "", "get_user_id", "x_y", "long_variable_name", "is_ok", "to_json", "one_two")
def camel_case(name):
    """Turn a snake case name into a camel case one."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@cases("aaabb", "abc", "", "zzzz", "aab", "a", "wwwwb", "xxyyzz", "mississippi", "aabaa")
def run_length(text):
    """Write runs of a letter as the letter and its count."""
    out = []
    for letter in text:
        if out and out[-1][0] == letter:
            out[-1][1] += 1
        else:
            out.append([letter, 1])
    return "".join(letter + str(count) for letter, count in out)


@cases(("abc", 1), ("xyz", 3), ("Hello, You", 5), ("", 4), ("Zebra", 2), ("a-b", 13), ("MNO", 26), ("wXy", 4), ("yes no", 7),
       ("q", 10))
def caesar(text, shift):
    """Move every letter along the alphabet."""
    out = ""
    for letter in text:
        if letter.isalpha():
            base = ord("A") if letter.isupper() else ord("a")
            letter = chr((ord(letter) - base + shift) % 26 + base)
        out += letter
    return out


@cases(("the cat the dog", "the"), ("a b c", "d"), ("", "x"), ("Yes yes YES", "yes"), ("one two one", "one"), ("aa a aaa", "a"),
       ("go. go go", "go"), ("UP up down", "Up"), ("tea for two", "for"), ("so so so", "so"))
def count_word(text, wanted):
    """Count how often a word stands in a text, whatever its case."""
    count = 0
    for word in text.lower().split():
        if word == wanted.lower():
            count += 1
    return count


@cases("  a b ", "x", "a    b", "", "one\ttwo  three", " lead", "trail  ", "a\nb", "no change", "  many   gaps here ")
def squeeze(text):
    """Make every run of blanks one blank and trim the ends."""
    out = []
    for word in text.split():
        out.append(word)
    return " ".join(out).strip()


@cases(("one two three four", 9), ("a b c", 1), ("hello", 3), ("", 5), ("aa bb cc dd", 5), ("to be or not", 6), ("abc de f", 4),
       ("x yy zzz", 4), ("long words here", 10), ("it is so", 5))
def wrap(text, width):
    """Break a text into lines that are no longer than a width."""
    lines = []
    current = ""
    for word in text.split():
        if current and len(current) + 1 + len(word) > width:
            lines.append(current)
            current = word
        else:
            current = (current + " " + word).strip()
    if current:
        lines.append(current)
    return lines


@cases("a b c", "one", "", "hello big world", "x y", "first second third", "up and down", "to do", "red green blue", "1 2 3 4")
def reverse_words(text):
    """Put the words of a text in the opposite order."""
    words = text.split()
    words.reverse()
    return " ".join(words)


@cases(("listen", "silent"), ("abc", "abd"), ("", ""), ("Tea", "eat"), ("aab", "abb"), ("a b", "ba"), ("one", "two"),
       ("Dormitory", "dirty room"), ("x", "xx"), ("night", "thing"))
def is_anagram(first, second):
    """Tell if two texts have the same letters."""
    left = sorted(first.lower().replace(" ", ""))
    right = sorted(second.lower().replace(" ", ""))
    return left == right


@cases("Ada Lovelace", "plato", "", "Jean Luc Picard", "a b c d", "Mary Ann Smith", "grace hopper", "X Y", "alan M turing", "bo")
def initials(name):
    """Give the initials of a name, each with a dot."""
    letters = []
    for part in name.split():
        letters.append(part[0].upper() + ".")
    return "".join(letters)


@cases(("cat", "cut"), ("abc", "abc"), ("abc", "xyz"), ("a", "b"), ("", ""), ("karolin", "kathrin"), ("1011", "1001"),
       ("flaw", "flow"), ("same", "Same"), ("river", "rover"))
def hamming(first, second):
    """Count the places at which two texts differ."""
    distance = 0
    for left, right in zip(first, second):
        if left != right:
            distance += 1
    return distance


@cases((["flower", "flow", "flight"],), (["a", "b"],), (["same", "same"],), ([],), (["abc"],), (["inter", "internet"],),
       (["", "x"],), (["prefix", "prelude", "press"],), (["ab", "abc", "abd"],), (["car", "cart", "cat"],))
def common_prefix(words):
    """Give the longest start that all words share."""
    if not words:
        return ""
    prefix = words[0]
    for word in words[1:]:
        while not word.startswith(prefix):
            prefix = prefix[:-1]
    return prefix


@cases(("1234567890", 4), ("12", 4), ("secret", 2), ("abcd", 4), ("", 3), ("card99", 3), ("x", 1), ("password", 1), ("token", 5),
       ("42424242", 2))
def mask(text, shown):
    """Hide all but the last characters of a text."""
    hidden = len(text) - shown
    if hidden <= 0:
        return text
    return "*" * hidden + text[hidden:]


@cases(("a,b;c", ",;"), ("one", ","), ("", ","), ("1-2-3", "-"), ("x;;y", ";"), ("k=v&w", "=&"), ("a.b c", ". "), (",lead", ","),
       ("end;", ";"), ("p|q", "|"))
def split_any(text, marks):
    """Split a text at every one of some marks and leave out empty pieces."""
    pieces = []
    current = ""
    for letter in text:
        if letter in marks:
            pieces.append(current)
            current = ""
        else:
            current += letter
    pieces.append(current)
    return [piece for piece in pieces if piece]


@cases("hello", "apple", "", "xyz", "string", "eat", "my house", "quick", "shy", "one two")
def pig_latin(text):
    """Move the first letter of every word to its end and add a syllable."""
    out = []
    for word in text.split():
        if word[0] in "aeiou":
            out.append(word + "way")
        else:
            out.append(word[1:] + word[0] + "ay")
    return " ".join(out)
