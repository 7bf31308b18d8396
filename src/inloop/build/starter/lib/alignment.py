"""Texts in their place: padding, centring, wrapping, columns and boxes."""

from inloop.build.starter.library import cases


@cases(("ab", 6, "*"), ("abc", 6, "-"), ("", 3, "."), ("long word", 4, "*"), ("x", 2, "_"), ("mid", 7, "="), ("even", 9, "+"), ("full", 4, "#"), ("a b", 8, "~"), ("odd", 8, "o"), ("t", 5, " "))
def pad_both_sides(text, width, mark):
    """Centre a text between marks; the right side gets the odd one."""
    room = width - len(text)
    if room <= 0:
        return text
    left = room // 2
    right = room - left
    return mark * left + text + mark * right


@cases([["a", "bb"], ["ccc", "d"]], [["one"]], [], [["x", "y", "z"], ["10", "200", "3"]], [["id", "n"], ["7", "Ann"]], [["", "a"], ["b", ""]], [["k", "v"], ["key", "value"], ["q", "w"]], [["1"], ["22"], ["333"]], [["left", "r"], ["l", "right"]], [["a b", "c"], ["d", "e f"]])
def align_rows(rows):
    """Write rows as lines whose cells start at the same places."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        line = " | ".join(cells)
        lines.append(line.rstrip())
    return lines


@cases((["a", "b", "c"], 8), (["one", "two"], 10), (["alone"], 8), (["so", "it", "is"], 11), ([], 4), (["x", "y", "z", "w"], 9), (["tight", "fit"], 9), (["too", "long"], 5), (["we", "go", "far"], 12), (["to", "be", "or", "not"], 16))
def justify_words(words, width):
    """Spread words over a line of a width; the first gaps are the wider ones."""
    if len(words) < 2:
        return "".join(words).ljust(width)
    gaps = len(words) - 1
    room = max(width - sum(len(word) for word in words), gaps)
    space, more = divmod(room, gaps)
    line = ""
    for index, word in enumerate(words[:-1]):
        extra = 1 if index < more else 0
        line += word + " " * (space + extra)
    return line + words[-1]


@cases(["1.5", "22.25", "3"], ["100", "2"], ["0.125", "12.5"], [], ["7"], ["-1.5", "10.75"], ["3.", "30.5"], ["1.25", "1000.5", "10"], [".5", "5"], ["99.9", "9.99", "999"])
def align_at_dot(numbers):
    """Pad numbers on the left so that their points stand below each other."""
    heads = [number.split(".")[0] for number in numbers]
    width = max([len(head) for head in heads], default=0)
    lines = []
    for number, head in zip(numbers, heads):
        space = " " * (width - len(head))
        lines.append(space + number)
    return lines


@cases(["hi"], ["one", "three"], [], [""], ["a", "bb", "c"], ["box me"], ["x", ""], ["left", "to"], ["wide 1", "w"], ["12", "345"], ["k  v ", "y"])
def box_around(lines):
    """Draw a box around lines; its bottom is a double line."""
    width = max([len(line) for line in lines], default=0)
    rule = "+" + "-" * (width + 2) + "+"
    out = [rule]
    for line in lines:
        out.append("| " + line.ljust(width) + " |")
    out.append(rule.replace("-", "="))
    return out


@cases(("Intro", "3", 12), ("Index", "120", 14), ("Too long a title", "9", 10), ("", "1", 5), ("A", "", 6), ("Tea", "2.50", 15), ("Milk", "1.05", 10), ("Bread", "4", 7), ("Part II", "77", 16), ("Ab", "cd", 6), ("End", "300", 9))
def dotted_leader(left, right, width):
    """Fill the room between two texts with dots, at least two of them."""
    room = width - len(left) - len(right)
    space = 2 if room > 3 else 0
    dots = max(room - space, 2)
    gap = " " if space else ""
    return left + gap + "." * dots + gap + right


@cases(("one two three four", 9, 2), ("a b c d e f", 5, 1), ("single", 10, 4), ("", 5, 2), ("to be or not to be", 8, 3), ("long words here", 6, 1), ("we go on and on", 7, 2), ("x yy zzz", 4, 0), ("alpha beta gamma", 11, 2), ("it is so", 6, 3))
def hanging_wrap(text, width, shift):
    """Wrap words to a width; all lines but the first are moved to the right."""
    lines = []
    for word in text.split():
        room = width - len(lines[-1]) if lines else 0
        if not lines:
            lines.append(word)
        elif len(word) + 1 <= room:
            lines[-1] += " " + word
        else:
            space = " " * shift
            lines.append(space + word)
    return lines


@cases(["  a", "    b"], ["x", " y"], [], ["   one"], ["  a", "", "  b"], ["    p", "  q", "      r"], ["", " "], [" k", "  v", " w"], ["   deep", "    more"], ["  a ", "   b b"])
def trim_shared_indent(lines):
    """Take away the spaces that all filled lines start with; blank lines become empty."""
    filled = [line for line in lines if line.strip()]
    depths = [len(line) - len(line.lstrip()) for line in filled]
    shared = min(depths, default=0)
    out = []
    for line in lines:
        kept = line[shared:] if line.strip() else ""
        out.append(kept)
    return out


@cases(("abcdefgh", 3), ("abc", 3), ("", 4), ("hello world", 5), ("ab", 5), ("123456", 4), ("x", 1), ("mountain", 6), ("to be", 2), ("seven77", 4), ("tenletters", 4))
def fold_to_width(text, width):
    """Cut a text into lines of a width, and fill the last one with dots."""
    lines = []
    for start in range(0, len(text), width):
        piece = text[start : start + width]
        missing = width - len(piece)
        if missing > 0:
            piece += "." * missing
        lines.append(piece)
    return lines


@cases((["a", "b", "c", "d", "e"], 2), (["a", "b", "c", "d"], 2), ([], 3), (["x"], 2), (["1", "2", "3", "4", "5", "6", "7"], 3), (["p", "q", "r"], 1), (["k", "l", "m"], 3), (["aa", "b", "cc"], 2), (["u", "v", "w", "x", "y", "z"], 3), (["i", "j", "k", "l", "m"], 4))
def fill_columns_down(items, count):
    """Lay items out in columns that are filled from top to bottom."""
    height = (len(items) + count - 1) // count
    lines = []
    for row in range(height):
        cells = []
        for column in range(count):
            index = column * height + row
            if index < len(items):
                cells.append(items[index])
        lines.append(" ".join(cells))
    return lines


@cases(("a\tb", 4), ("\tx", 4), ("abcd\te", 4), ("no tabs", 8), ("", 4), ("a\tbb\tc", 3), ("\t\ty", 2), ("one\ttwo", 8), ("ab\t", 5), ("12345\t6", 4), ("k\tv\tw", 2))
def fill_tab_stops(line, size):
    """Put spaces for each tab up to the next stop."""
    out = ""
    for letter in line:
        if letter == "\t":
            missing = size - len(out) % size
            out += " " * missing
        else:
            out += letter
    return out


@cases((["a", "bb"], ["x", "y"], 2), (["one"], ["1", "2"], 1), ([], ["r"], 3), (["l"], [], 2), ([], [], 1), (["abc", "d", "ef"], ["g"], 1), (["p", "q"], ["r", "s"], 0), (["long one", "s"], ["m", "n"], 1), (["k"], ["v"], 4), (["", "t"], ["u", "w"], 2))
def side_by_side(first, second, gap):
    """Set two blocks of lines next to each other."""
    width = max([len(line) for line in first], default=0)
    height = max(len(first), len(second))
    merged = []
    for index in range(height):
        left = first[index] if index < len(first) else ""
        right = second[index] if index < len(second) else ""
        line = left.ljust(width + gap) + right
        merged.append(line.rstrip())
    return merged


@cases((["a", "bb", "ccc"], "right"), (["one", "three"], "left"), (["x", "long"], "middle"), ([], "right"), (["ab", "abcde"], "middle"), (["12", "345"], "right"), (["k", "kk"], "left"), (["t", "tttt"], "middle"), (["7", "1000"], "right"), (["same", "size"], "middle"), (["p", "qqqqqq"], "left"))
def align_block(lines, side):
    """Pad lines to the widest one, to the left, the right or the middle."""
    width = max([len(line) for line in lines], default=0)
    out = []
    for line in lines:
        room = width - len(line)
        before = 0
        if side == "right":
            before = room
        elif side == "middle":
            before = room // 2
        out.append(" " * before + line + " " * (room - before))
    return out


@cases((["ab", "c"], 3), (["one", "two", "six"], 2), ([], 2), (["x"], 4), (["a", "b", "c"], 1), (["left", "right"], 3), (["to", "", "go"], 2), (["p", "q", "r", "s"], 2), (["down", "we", "go"], 1), (["k", "l"], 0))
def staircase_lines(words, step):
    """Move each word further right than the one before; an empty word takes no step."""
    shift = 0
    lines = []
    for word in words:
        if not word:
            lines.append("")
            continue
        line = " " * shift + word
        lines.append(line)
        shift += step
    return lines


@cases(([3, 2], "lr"), ([1], "l"), ([4, 4, 2], "lcr"), ([], ""), ([3, 5], "cc"), ([2, 2], "rl"), ([1, 2, 3], "rrr"), ([6], "c"), ([5, 1], "ll"), ([3, 3, 3], "lrc"), ([0, 4], "cr"))
def markdown_rule(widths, sides):
    """Write the line below a table's head, with colons for the sides."""
    cells = []
    for width, side in zip(widths, sides):
        size = max(width, 3)
        left = ":" if side in "lc" else "-"
        right = ":" if side in "rc" else "-"
        cells.append(left + "-" * (size - 2) + right)
    line = "|".join(cells)
    return f"|{line}|" if cells else ""
