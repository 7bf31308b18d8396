"""Texts built from lists: listings, paths, labels, bars and tags."""

from inloop.build.starter.library import cases


@cases(["tea", "milk"], [" egg "], [], ["", "ham"], ["a", " ", "b"], ["x "], ["red", "", "blue"], [" y", "z "], ["oil"], ["Go", "Stop "], [" "])
def dash_listing(items):
    """Write every item that is not empty on a line with a dash."""
    lines = []
    for item in items:
        if item.strip():
            lines.append("- " + item.strip())
    return "\n".join(lines)


@cases((["a", "b"], 1), (["x"], 5), ([], 1), (["one", "two", "three"], 0), (["p", "q"], 9), (["tea", "milk"], 3), (["go"], 1), (["m", "n", "o"], 10), (["end"], 0), (["left", "right"], 2))
def numbered_listing(items, start):
    """Write items with their numbers, counted from a start."""
    parts = []
    for index, item in enumerate(items, start):
        parts.append(str(index) + ". " + item)
    return ", ".join(parts)


@cases(["home", "shop", "shoes"], ["home"], [], ["a", "b"], ["", "x"], ["main", "", "help"], ["docs", "api", ""], ["top", "middle", "low", "end"], ["News"], ["user", "mail"], ["", ""])
def crumb_trail(titles):
    """Join titles as a way through pages, the last one in capitals."""
    kept = [title for title in titles if title]
    if not kept:
        return "/"
    last = kept.pop().upper()
    return " > ".join(kept + [last])


@cases(["news", "Art"], ["b", "a", "B"], [], ["Go"], ["x", "x"], ["home", "garden", "Cook"], ["Z", "y", "z"], ["tea", "TEA", "Tea"], ["map"], ["new", "old", "New"], ["One", "two"])
def hash_tag_line(tags):
    """Write tags sorted, in lower case, each once."""
    seen = []
    for tag in tags:
        word = "#" + tag.lower()
        if word not in seen:
            seen.append(word)
    return " ".join(sorted(seen))


@cases(([3, 1], 5), ([0, 2], 4), ([], 3), ([9], 4), ([5, 0, 7], 6), ([1, 1, 1], 1), ([2], 2), ([4, 0, 8], 3), ([-1, 3], 5), ([10, 2], 8), ([-2], 3))
def bar_rows(values, limit):
    """Draw a bar for each value, none longer than a limit."""
    bars = []
    for value in values:
        size = min(value, limit)
        bar = "#" * size
        bars.append(bar or "-")
    return "|".join(bars)


@cases(["a", "b"], ["a", 0, "b"], ["rows", 2], [], [1], ["x", 0, 1], ["user", "name"], ["list", -1, "key"], ["top"], ["m", "n", 3], ["data", 7, "id", 0])
def value_path(keys):
    """Join keys with dots, numbers in brackets."""
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        else:
            path += "." + key
    return path.lstrip(".")


@cases(["red", "blue", "green"], ["tea"], [], ["yes", "no"], ["b", "c", "a", "d"], ["north", "south"], ["x"], ["one", "two", "six"], ["pen", "ink"], ["m", "k", "l"])
def choice_list(words):
    """Offer words in alphabetical order, with an or before the last one."""
    words = sorted(words)
    if len(words) < 2:
        return "".join(words)
    last = words.pop()
    return ", ".join(words) + " or " + last


@cases([["a", "b"], ["c"]], [["x"]], [], [["one", ""], ["two", "2"]], [["p", " q "]], [[], ["r"]], [["id", "name"], ["1", "Ann "]], [["z", "z", "z"]], [[" "], ["y"]], [["k", "v"], [], ["m"]])
def fenced_rows(rows):
    """Write the cells of rows between bars, and leave out empty rows."""
    lines = []
    for row in rows:
        line = "|".join(row)
        if line.strip("| "):
            lines.append("|" + line + "|")
    return "\n".join(lines)


@cases([1, 2, 0], [1, 0, 3], [4], [0, 0], [], [2, 0, 0], [10, 1], [3, 0, 1, 0], [1, 2, 3], [7, 0], [0, 5, 0])
def chapter_label(levels):
    """Write the levels of a chapter without zeros at the end."""
    kept = list(levels)
    while kept and kept[-1] == 0:
        kept.pop()
    label = ".".join(map(str, kept))
    return label or "start"


@cases(("a", {"href": "x"}), ("br", {}), ("img", {"src": "p", "alt": None}), ("p", {"id": ""}), ("td", {"b": "1", "a": "2"}), ("i", {"k": None}), ("li", {"value": "3"}), ("b", {"m": "n", "c": "d"}), ("hr", {"z": None, "w": "5"}), ("ol", {"start": "7"}))
def opening_tag(name, fields):
    """Write a tag with its known fields."""
    parts = [name]
    for key, value in fields.items():
        if value is not None:
            parts.append(key + "=" + value)
    return "<" + " ".join(parts) + ">"


@cases(({"big": True, "red": False}, "box"), ({}, "row"), ({"on": 1, "off": 0}, ""), ({"a": True, "b": True}, "c"), ({"hot": False}, "tea"), ({"new": True}, ""), ({"x": 2, "y": 0, "z": 1}, "p"), ({"wide": True}, "cell"), ({"old": False, "dim": False}, ""), ({"open": "yes", "shut": ""}, "door"))
def class_names(mapping, base):
    """Join a base name and, in lower case, the names switched on."""
    names = [base] if base else []
    for name, value in mapping.items():
        if value:
            names.append(name.lower())
    return " ".join(names)


@cases((["a", "b", "c"], 2), (["x"], 2), ([], 3), (["p", "q"], 0), (["m", "n", "o", "p"], 3), (["one", "two"], 2), (["k", "l", "m"], 1), (["tea", "milk", "egg", "oil"], 2), (["u", "v", "w"], 0), (["red", "blue"], 1))
def list_with_more(items, limit):
    """List items up to a limit and count the others."""
    shown = items[:limit]
    hidden = len(items) - len(shown)
    if hidden > 0:
        shown.append("+" + str(hidden))
    return ", ".join(shown)
