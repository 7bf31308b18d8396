"""Short helpers for tables of keys and values."""

from inloop.build.starter.library import cases


@cases({"a": 3, "b": 7}, {"a": 7, "b": 3}, {}, {"x": 5, "y": 5}, {"m": -2, "n": -1, "o": -3}, {"k": 0}, {"p": 1, "q": 4, "r": 2}, {"u": 9, "v": 9, "w": 8}, {"d": 2, "e": 3, "f": 3}, {"s": 0, "t": -1})
def key_with_most(table):
    """Give the key of the highest value, the first of equals."""
    best = None
    for key in table:
        if best is None or table[key] > table[best]:
            best = key
    return best


@cases(({"a": 3, "b": 4}, ["a", "b"]), ({"a": 3}, ["b"]), ({}, []), ({"x": 5, "y": 1}, ["y", "z"]), ({"k": 2}, ["k", "k"]), ({"m": -1, "n": 6}, ["n", "m"]), ({"p": 8, "q": 9}, ["q"]), ({"u": 7}, []), ({"d": 10, "e": 0}, ["d", "e", "f"]), ({"t": -4}, ["t"]))
def total_of_keys(table, wanted):
    """Add up the values of the wanted keys; a missing one counts nothing."""
    total = 0
    for name in wanted:
        total += table.get(name, 0)
    return total


@cases(({"b": 5, "a": 7}, 5), ({"a": 1}, 2), ({}, 0), ({"x": 4, "y": 4, "z": 3}, 4), ({"k": 0, "j": 2}, 0), ({"m": -1, "n": -3}, -2), ({"q": 9, "p": 8}, 10), ({"w": 6, "v": 1, "u": 6}, 2), ({"e": 3, "d": 3}, 3), ({"t": 12, "s": 11, "r": 10}, 11))
def keys_at_least(table, limit):
    """List in alphabetical order the keys whose value is no lower than the limit."""
    found = []
    for name, amount in table.items():
        if amount >= limit:
            found.append(name)
    return sorted(found)


@cases(({"a": 1}, {"b": 2}), ({"a": 1}, {"a": 5}), ({}, {"x": 0}), ({"k": None}, {"k": "v"}), ({"m": 0}, {"m": 3, "n": 4}), ({"p": 7, "q": None}, {"q": 8, "p": 9}), ({"u": ""}, {"u": "w"}), ({"d": 2}, {}), ({}, {}), ({"s": False, "t": None}, {"s": True}))
def with_default_values(table, defaults):
    """Fill in what a table lacks or holds only as None."""
    filled = dict(table)
    for name, value in defaults.items():
        if filled.get(name) is None:
            filled[name] = value
    return filled


@cases(({"a": 1, "b": 2}, "a", "b"), ({"a": 1}, "a", "b"), ({"b": 1}, "a", "b"), ({"x": 5, "y": 6, "z": 7}, "x", "z"), ({}, "k", "m"), ({"m": 3, "n": 4}, "n", "m"), ({"p": 8, "q": 9}, "p", "p"), ({"u": "U", "v": "V"}, "v", "u"), ({"d": 0, "e": 1}, "c", "d"),
       ({"s": 2, "t": 3}, "s", "r"))
def swap_two_keys(table, first, second):
    """Swap the values of two keys that exist."""
    after = dict(table)
    if first in table and second in table:
        after[first] = table[second]
        after[second] = table[first]
    return after


@cases({"a": 1, "b": 2}, {"b": 1, "a": 1}, {}, {"x": "y"}, {"m": 5, "n": 5, "k": 6}, {"q": 0, "p": 0, "r": 0}, {"u": "v", "v": "u"}, {"d": 3, "c": 3}, {"e": 4, "f": 4}, {"s": True, "t": False})
def keys_to_values(table):
    """Turn keys into values; the lowest of equals stays."""
    turned = {}
    for key, value in table.items():
        if value not in turned or key < turned[value]:
            turned[value] = key
    return turned


@cases({"a": 3, "b": 8}, {"a": 8, "b": 3}, {}, {"x": 5}, {"m": 2, "n": 2}, {"p": -4, "q": 4, "r": 0}, {"u": 10, "v": 1, "w": 6}, {"d": -7}, {"e": 100, "f": 40}, {"s": 0, "t": -3})
def spread_of_values(table):
    """Tell how far the values lie apart; one alone or none gives 0."""
    numbers = list(table.values())
    if len(numbers) < 2:
        return 0
    return max(numbers) - min(numbers)


@cases(({"a": 5, "b": 1}, "a", "b", 2), ({"a": 5}, "a", "c", 5), ({"a": 3, "b": 4}, "b", "a", 9), ({"x": 0, "y": 2}, "x", "y", 1), ({"k": 7}, "k", "m", 3), ({"m": 6, "n": 6}, "n", "m", 6), ({"p": 10, "q": 0}, "p", "q", 0), ({"u": 1}, "u", "v", 4), ({"d": 8, "e": 3}, "e", "d", 1),
       ({"s": 2, "t": 2}, "s", "t", 3))
def move_amount(table, giver, taker, amount):
    """Move an amount, or all that is there."""
    after = dict(table)
    moved = min(after[giver], amount)
    after[giver] -= moved
    after[taker] = after.get(taker, 0) + moved
    return after


@cases(({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 1}), ({"a": 1}, {"b": 1}), ({}, {"x": 1}), ({"x": 5, "y": 6}, {"x": 6, "y": 5}), ({"k": 0, "m": 1}, {"k": 0, "m": 2}), ({"p": "a", "q": "b"}, {"q": "c"}), ({"u": None}, {"u": 0}), ({"d": 3, "e": 4}, {"d": 3, "e": 4}), ({"s": 1, "t": 2}, {"t": 2}))
def keys_that_differ(before, after):
    """List the keys of both tables whose values differ."""
    found = []
    for key in before:
        if key in after and before[key] != after[key]:
            found.append(key)
    return found


@cases({"a": 3, "b": 1}, {"a": 1}, {}, {"x": 2, "y": 5}, {"k": 0}, {"m": 1, "n": 4, "o": 0}, {"p": 10}, {"u": 7, "v": 2}, {"d": -1, "e": 3}, {"s": 1, "t": 1})
def take_one_each(stock):
    """Take one of everything and drop what is used up."""
    rest = {}
    for name, count in stock.items():
        if count > 1:
            rest[name] = count - 1
    return rest


@cases({"a": 1, "b": 1}, {"a": 3, "b": 1}, {}, {"x": 5}, {"m": 2, "n": 3, "o": 5}, {"k": 0, "j": 4}, {"p": 1, "q": 2}, {"u": 30, "v": 70}, {"d": 9, "e": 1}, {"s": 1, "t": 7})
def percent_by_key(table):
    """Turn amounts into whole percents of their sum."""
    total = sum(table.values())
    shares = {}
    for name, amount in table.items():
        shares[name] = round(100 * amount / total)
    return shares


@cases(["a", "bb", "c"], [], [""], ["one", "two", "three"], ["x", ""], ["four", "five", "six"], ["no", "on", "of"], ["", "", "abc"], ["deed"], ["up", "down", "left", "right"])
def words_per_size(words):
    """Count the words of each length but the empty ones."""
    tally = {}
    for word in words:
        size = len(word)
        if size > 0:
            tally[size] = tally.get(size, 0) + 1
    return tally


@cases(({"a": "b"}, "a"), ({"a": "b", "b": "c"}, "a"), ({}, "x"), ({"a": "b", "b": "c", "c": "d"}, "a"), ({"a": "b", "b": "c", "c": "d", "d": "e"}, "a"), ({"x": "y", "y": "x"}, "x"), ({"x": "y", "y": "x"}, "y"), ({"k": "m"}, "m"), ({"p": "q", "q": "r"}, "q"), ({"u": "v", "v": "w", "w": "u"}, "v"))
def follow_aliases(aliases, name):
    """Follow a name through at most three aliases."""
    for step in range(3):
        name = aliases.get(name, name)
    return name
