"""A few words: short sentences, their words and how loud they are."""

from inloop.build.starter.library import cases


@cases("portable document format", "out of office", "", "so be it", "ready to wear", "the end", "as soon as possible", "Isle of Man", "go on", "read the manual", "one two six")
def acronym_of(phrase):
    """Join in capitals the first letters of the words longer than two letters."""
    letters = ""
    for word in phrase.split():
        if len(word) > 2:
            letters += word[0].upper()
    return letters


@cases("I like cake.", "stop!!!! now ok", "", "one two three", "a bb cc", "Hi, you there?", "wow!!! great", "no", "red blue, pink", "Go... home!", "We all fall down.")
def longest_word(sentence):
    """Find the longest word, without marks."""
    longest = ""
    for word in sentence.split():
        word = word.strip(".,!?")
        if len(word) > len(longest):
            longest = word
    return longest


@cases("stop", "Come here.", "", " wait? ", "No!!!", "...", "go on", "What?!", "Look out!", "  hey", "one. two.", " ")
def shout_back(text):
    """Write a sentence large, with one ! at its end, or just a ? if nothing is said."""
    plain = text.strip().rstrip(".!?")
    if not plain:
        return "?"
    return plain.upper() + "!"


@cases(("the quick fox", 9), ("hello world", 5), ("a b c d", 3), ("", 4), ("longword", 3), ("one two", 7), ("one two", 6), ("go  home now", 8), ("we are here", 20), ("to be or not", 5), ("red blue", 4))
def fit_phrase(phrase, width):
    """Keep the first words that fit into a width."""
    line = ""
    for word in phrase.split():
        if len(line) + len(word) > width:
            break
        line += word + " "
    return line.rstrip()


@cases(("Hello World!", 2), ("who is there?", 1), ("Go", 3), ("all of you", 0), ("Come Back", 1), ("Stop!", 2), ("I am Here.", 2), ("la La", 3), ("Where to", 1), ("Yes Sir!", 1))
def echo_last_word(phrase, times):
    """Repeat the last word softly, as an echo does."""
    words = phrase.split()
    last = words[-1].rstrip("!?.")
    words.extend([last.lower()] * times)
    return " ".join(words)


@cases(("hello", 1), ("hello", 2), ("", 1), ("Mountain", 3), ("go", 1), ("Valley", 2), ("YES", 1), ("x", 5), ("abcdef", 4), ("Echo", 2), ("ninety", 3))
def fading_echo(word, step):
    """Repeat a word that loses some letters each time."""
    parts = []
    for start in range(0, len(word), step):
        tail = word[start:]
        parts.append(tail)
    return "... ".join(parts)


@cases(("I like big cakes.", 3), ("a bb ccc", 2), ("", 1), ("go! go! go!", 3), ("one, two, three", 3), ("yes", 3), ("who are you?", 4), ("red blue green", 4), ("No... way!", 4), ("we all sing", 1), ("stop it!", 4))
def long_word_count(sentence, least):
    """Count words of at least so many letters."""
    count = 0
    for word in sentence.split():
        letters = word.strip(".,!?")
        if len(letters) >= least:
            count += 1
    return count


@cases("Who?", "Stop!", "I am.", "", "well", "Is it? ", " Run! ", "It is. ", "Hm...", "What!?", "No?!", "why? because")
def sentence_mood(text):
    """Name a sentence by its last mark."""
    moods = {"?": "question", "!": "shout", ".": "statement"}
    ending = text.strip()[-1:]
    return moods.get(ending, "fragment")


@cases("you are here", "one two", "", "alone", "a b c d", "  spaced out ", "cat and dog", "x y", " hi ", "first then last", "no no yes")
def swap_outer_words(phrase):
    """Swap the first and the last word."""
    words = phrase.split()
    if len(words) < 2:
        return phrase
    words[0], words[-1] = words[-1], words[0]
    return " ".join(words)


@cases(("big dog", 1), ("no", 2), ("", 3), ("I am cold", 0), ("Help me", 1), ("so so", 2), ("a", 4), ("very odd day", 1), ("Oh", 1), ("run now", 3))
def stutter_words(phrase, times):
    """Say the first letter of each word more often: b-big."""
    result = []
    for word in phrase.split():
        start = (word[0] + "-") * times
        result.append(start + word)
    return " ".join(result)


@cases("big bad wolf", "Peter Piper picked", "", "one", "no new Nose", "cat dog", "A an", "we Were there too", "so he said so", "Sally sells shells", "red blue")
def alliteration_count(phrase):
    """Count words that start like the one before, in capitals or not."""
    words = phrase.lower().split()
    count = 0
    for before, after in zip(words, words[1:]):
        count += before[0] == after[0]
    return count


@cases("I am LATE", "STOP NOW", "", "A cat", "hello", "this IS Big", "OK I go", "NO way!", "WOW!", "x Y z", "Not SO Loud")
def calm_words(phrase):
    """Give shouted words one capital."""
    words = []
    for word in phrase.split():
        shouted = word.isupper() and len(word) > 1
        words.append(word.title() if shouted else word)
    return " ".join(words)
