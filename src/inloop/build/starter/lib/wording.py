"""Sentences and words: shortening, joining, counting, endings."""

from inloop.build.starter.library import cases


@cases(("abcdefghij", 6), ("short", 10), ("exactly", 7), ("holiday", 6), ("a long title", 8), ("abcdef", 3), ("abcdefgh", 5), ("", 4), ("mountains", 4), ("library card", 9), ("ab", 1))
def cut_out_middle(text, limit):
    """Shorten a text to a limit by two dots in its middle; the head gets the odd letter."""
    if len(text) <= limit:
        return text
    room = max(limit - 2, 0)
    tail = room // 2
    head = room - tail
    ending = text[len(text) - tail :]
    return (text[:head] + ".." + ending)[:limit]


@cases((["Ann", "Bob", "Cy"], 2), (["Ann"], 2), ([], 3), (["Ann", "Bob"], 2), (["a", "b", "c", "d", "e"], 2), (["a", "b", "c", "d"], 3), (["Ida", "Jo", "Kai"], 1), (["x", "y", "z"], 5), (["Leo", "Mia"], 1), (["p", "q", "r", "s", "t"], 3), (["u"], 1))
def name_a_few(names, limit):
    """Name the first few, and count the others."""
    shown = names[:limit]
    rest = len(names) - len(shown)
    if rest == 0:
        return ", ".join(shown)
    noun = "other" if rest == 1 else "others"
    return f"{', '.join(shown)} and {rest} {noun}"


@cases("light", "table", "song", "tree", "sky", "brrr", "Moon", "a", "", "banana", "street", "hello")
def rhyme_ending(word):
    """Give a word's ending from its last group of vowels on."""
    vowels = "aeiouy"
    start = len(word)
    for index in range(len(word) - 1, -1, -1):
        is_vowel = word[index].lower() in vowels
        if is_vowel:
            start = index
        elif start < len(word):
            break
    return word[start:].lower()


@cases(["my cat", "a dog", "his hat", "the fog"], ["sea", "tea"], ["one"], [], ["day", "sun", "way", "fun"], ["Bright", "NIGHT", "tree"], ["a", "b", "a"], ["red", "bed", "led", "sky"], ["old", "cold", "new", "few", "gold"], ["in a box", "on a fox", "no"])
def rhyme_scheme(lines):
    """Give each line a letter; lines with the same last two letters share it."""
    known = []
    marks = ""
    for line in lines:
        ending = line.lower()[-2:]
        if ending not in known:
            known.append(ending)
        marks += "ABCDEFGH"[known.index(ending)]
    return marks


@cases("cities", "boxes", "dogs", "glass", "ties", "churches", "bus", "apples", "wishes", "fish", "stories", "kisses")
def singular_noun(noun):
    """Take the ending for many off a noun."""
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    for ending in ("sses", "xes", "ches", "shes"):
        if noun.endswith(ending):
            return noun[:-2]
    if noun.endswith("s") and noun[-2] not in "su":
        return noun[:-1]
    return noun


@cases("apple", "pear", "hour", "unit", "user", "umbrella", "Egg", "house", "", "honest man", "union", "owl")
def with_article(noun):
    """Put a or an before a noun, by its sound."""
    if not noun:
        return ""
    lower = noun.lower()
    vowel_sound = lower[0] in "aeiou"
    if lower.startswith(("hour", "honest", "heir")):
        vowel_sound = True
    elif lower.startswith(("uni", "use", "one")):
        vowel_sound = False
    article = "an" if vowel_sound else "a"
    return article + " " + noun


@cases("walk", "love", "cry", "play", "stop", "need", "try", "hug", "fix", "agree", "plan", "show")
def past_of_verb(verb):
    """Give the past of a short regular verb, as it is spelt."""
    vowels = "aeiou"
    last, before = verb[-1], verb[-2]
    if last == "e":
        return verb + "d"
    if last == "y" and before not in vowels:
        return verb[:-1] + "ied"
    if last not in "aeiouwxy" and before in vowels and verb[-3] not in vowels:
        verb += last
    return verb + "ed"


@cases("make", "run", "see", "tie", "read", "play", "die", "sit", "dance", "fix", "help", "agree")
def ing_form(verb):
    """Put -ing to a short verb, as it is spelt."""
    vowels = "aeiou"
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    end = verb[-3:]
    closed = end[0] not in vowels and end[1] in vowels
    if closed and end[2] not in "aeiouwxy":
        verb += end[2]
    return verb + "ing"


@cases("Hi. How are you?", "Wait... what?!", "", "no end", "One. Two. Three.", "Go!", "Done. And more", "Really?? Yes!", "...", "It is 3.5 long.", "A! B? C. D")
def count_sentences(text):
    """Count the sentences: words that end with a mark, and what is left at the end."""
    count = pending = 0
    for word in text.split():
        if word.strip(".!?") != "":
            pending += 1
        if pending > 0 and word[-1] in ".!?":
            count += 1
            pending = 0
    return count + min(pending, 1)


@cases("Ann Marie Smith", "Bob", "", "cy de Vries", "Ida Jo", "  Kai   Berg ", "Anna-Lena Wolf", "a b c d", "Leo N. Tolstoy", "mia-pia roth", "J R R Tolkien")
def short_given_names(name):
    """Shorten all names but the last to their first letters."""
    names = name.split()
    if len(names) < 2:
        return name.strip()
    short = []
    for given in names[:-1]:
        parts = [part[:1].upper() + "." for part in given.split("-")]
        short.append("-".join(parts))
    return " ".join(short + names[-1:])


@cases("hello. how are you?", "one! two? three.", "", "a.b", "ALL LOUD. VERY", "already Fine. ok", "wait... so", "no marks here", "  lead. tail", "x? y", "cats 3. they sleep")
def sentence_case(text):
    """Write small letters, but a capital at the start of each sentence."""
    result = ""
    before = "."
    for letter in text.lower():
        if before in ".!?":
            letter = letter.upper()
        if letter != " ":
            before = letter
        result += letter
    return result


@cases(["a hyphen-", "ated word"], ["one", "two"], [], ["end-"], ["so", "long-", "est", "line"], [" pad ", "ded"], ["a-b", "c"], ["", "x"], ["re-", "pla-", "ces"], ["first line", "", "third"], ["-", "y"])
def join_broken_lines(lines):
    """Join lines to one text, and mend the words that a hyphen broke."""
    text = ""
    for line in lines:
        piece = line.strip()
        if text.endswith("-"):
            text = text[:-1] + piece
        elif text and piece:
            text += " " + piece
        else:
            text += piece
    return text


@cases("banana", "tree", "make", "table", "a", "", "sky", "rhythm", "Open", "mice", "beautiful", "the")
def count_syllables(word):
    """Count the groups of vowels; a last e takes one off, but not in le or ee, and never the only one."""
    count = 0
    before = ""
    for letter in word.lower():
        if letter in "aeiouy" and before not in list("aeiouy"):
            count += 1
        before = letter
    silent = word.endswith("e") and not word.endswith(("le", "ee"))
    if silent and count > 1:
        count -= 1
    return count


@cases(("one two three", 2), ("one two", 2), ("", 3), ("a b c d", 3), ("well, then we go", 1), ("stop. go on", 1), ("single", 0), ("  spaced   out words ", 2), ("yes; no; maybe", 2), ("x y", 5), ("so it is, my friend", 3))
def first_words(text, limit):
    """Keep the first words, and show by three dots that there are more."""
    words = text.split()
    kept = words[:limit]
    if len(kept) == len(words):
        return " ".join(kept)
    shown = " ".join(kept).rstrip(",;.")
    return shown + "..."


@cases("light snow", "crushing blow", "one", "", "jelly beans", "owl tree", "bad salad", "big red fox", "sly try", "Fast car", "nth dog")
def swap_word_starts(text):
    """Swap what stands before the first vowel in the first and the last word."""
    words = text.split()
    if len(words) < 2:
        return text
    cuts = []
    for word in (words[0], words[-1]):
        cut = [i for i, letter in enumerate(word + "a") if letter in "aeiou"]
        cuts.append(min(cut[0], len(word)))
    first, last = words[0], words[-1]
    words[0] = last[: cuts[1]] + first[cuts[0] :]
    words[-1] = first[: cuts[0]] + last[cuts[1] :]
    return " ".join(words)
