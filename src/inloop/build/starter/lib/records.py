"""Records: dicts with named fields."""

from inloop.build.starter.library import cases


@cases(({"a": 1}, {"b": 2}), ({"a": {"x": 1}}, {"a": {"y": 2}}), ({}, {}), ({"a": 1}, {"a": 2}), ({"k": {"x": 1}}, {"k": 5}), ({"k": 5}, {"k": {"x": 1}}), ({"s": {"t": {"u": 1}}}, {"s": {"t": {"v": 2}}}), ({"m": {"n": 1}}, {}), ({}, {"z": {"w": 0}}),
       ({"p": {"q": 1, "r": 2}}, {"p": {"q": 3}}))
def deep_merge(first, second):
    """Merge two dicts, and the dicts inside them; the second one wins."""
    merged = dict(first)
    for key, value in second.items():
        current = merged.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            merged[key] = deep_merge(current, value)
        else:
            merged[key] = value
    return merged


@cases(({"a": 1, "b": 1},), ({"x": "p", "y": "q"},), ({},), ({"k": 0},), ({"b": 2, "a": 2, "c": 3},), ({"m": "s", "n": "s", "o": "t"},), ({"u": None, "v": 1},), ({"one": 1, "uno": 1, "two": 2},), ({"z": 5, "y": 5},), ({"p": "", "q": "x"},), ({"h": None},))
def keys_by_value(mapping):
    """Turn a dict around: each value but None with the sorted keys that have it."""
    result = {}
    for key, value in mapping.items():
        if value is None:
            continue
        result.setdefault(value, []).append(key)
    for names in result.values():
        names.sort()
    return result


@cases(({"a": 1, "b": 2}, ["a", "c"]), ({"x": 1}, []), ({}, ["q"]), ({"k": 0, "l": 1}, ["l"]), ({"a": 1, "b": None}, []), ({"m": None, "n": ""}, ["n"]), ({"p": 5}, ["p"]), ({"u": 1, "v": 2, "w": 3}, ["w", "u"]), ({"s": False, "t": None}, ["q"]),
       ({"c": 3, "d": 4}, ["e"]))
def omit_fields(record, fields):
    """Copy a record without some fields and without what is None."""
    result = {}
    for key, value in record.items():
        if key not in fields and value is not None:
            result[key] = value
    return result


@cases(({"a": {"b": 1}}, "a.b", 0), ({"a": 1}, "a.b", -1), ({"a": [5, 6]}, "a.1", None), ({"a": [5]}, "a.1", 9), ({}, "x", "no"), ({"k": {"l": {"m": 7}}}, "k.l.m", 0), ({"k": [{"n": 2}]}, "k.0.n", 0), ({"q": 3}, "q", 0), ({"r": {"s": None}}, "r.s", 1),
       ({"t": {}}, "t.u", "?"), ({"v": [1, [2, 3]]}, "v.1.0", 0))
def dig(record, path, default):
    """Follow a path with dots through dicts and lists."""
    current = record
    for step in path.split("."):
        if isinstance(current, dict) and step in current:
            current = current[step]
        elif isinstance(current, list) and step.isdigit() and int(step) < len(current):
            current = current[int(step)]
        else:
            return default
    return current


@cases(({"a": 1}, {"a": "b"}), ({"a": 1, "b": 2}, {"a": "b"}), ({}, {"x": "y"}), ({"k": 0}, {}), ({"a": 1, "c": 3}, {"a": "z", "c": "w"}), ({"p": 5, "q": 6}, {"q": "p"}), ({"m": 1}, {"n": "o"}), ({"u": 1, "v": 2}, {"u": "v", "v": "u"}), ({"s": "t"}, {"s": "s"}),
       ({"d": 4, "e": 5, "f": 6}, {"d": "g"}))
def rename_fields(record, new_names):
    """Rename the fields of a record; a name in use gets an underscore at its end."""
    renamed = {}
    for key in record:
        name = new_names.get(key, key)
        while name in renamed:
            name += "_"
        renamed[name] = record[key]
    return renamed


@cases(({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), ({}, {}), ({"k": 0}, {"k": 0}), ({"x": 1, "y": 2}, {"x": 1}), ({}, {"n": 5}), ({"p": None}, {"p": 3}), ({"m": "s", "n": "t"}, {"m": "t", "n": "t"}), ({"c": 1, "b": 2}, {"c": 3, "b": 4}), ({"q": [1]}, {"q": [1, 2]}))
def record_changes(before, after):
    """Tell for each field that differs what it was and what it is."""
    changes = {}
    for key in sorted(before.keys() | after.keys()):
        old = before.get(key)
        new = after.get(key)
        if old != new:
            changes[key] = (old, new)
    return changes


@cases(([{"c": "r"}, {"c": "b"}, {"c": "r"}], "c"), ([], "x"), ([{"a": 1}], "b"), ([{"k": "y"}, {}], "k"), ([{"n": 1}, {"n": 2}, {"n": 2}], "n"), ([{"p": None}, {"p": "q"}], "p"), ([{"s": "a"}, {"s": "b"}], "s"), ([{"t": 0}, {"t": 0}], "t"),
       ([{"m": "u"}, {"m": "v"}, {"m": "v"}], "m"), ([{"z": ""}, {"z": "w"}, {}], "z"))
def tally_field(records, field):
    """Count the values of a field, the most frequent first; a missing field counts as the value none."""
    counts = {}
    for record in records:
        value = record.get(field, "none")
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts.items(), key=lambda pair: -pair[1])


@cases(({"a": {"b": 1}},), ({"a": 1, "b": 2},), ({},), ({"k": {"l": {"m": 0}}},), ({"x": {"y": 1, "z": 2}},), ({"e": {}},), ({"p": {"q": [1]}, "r": 3},), ({"u": {"v": None}},), ({"s": {"t": {}}, "w": 4},), ({"c": {"d": {"e": 5}, "f": 6}},))
def flat_fields(record):
    """Make a nested record flat; the names of the levels are joined by a dot."""
    flat = {}
    for key, value in record.items():
        if isinstance(value, dict):
            for name, item in flat_fields(value).items():
                flat[key + "." + name] = item
        else:
            flat[key] = value
    return flat


@cases(({"a.b": 1},), ({"a": 1},), ({},), ({"a.b": 1, "a.c": 2},), ({"x.y.z": 0},), ({"k": 1, "l.m": 2},), ({"p.q.r": 1, "p.s": 2},), ({"u.v": None, "w": 3},), ({"c.d": [1]},), ({"one.two": 1, "one.three": 3},))
def nest_fields(flat):
    """Turn field names with dots into dicts inside dicts."""
    record = {}
    for path, value in flat.items():
        parts = path.split(".")
        level = record
        for part in parts[:-1]:
            level = level.setdefault(part, {})
        level[parts[-1]] = value
    return record


@cases(([{"id": 1, "v": 2}], "id"), ([{"id": 1}, {"id": 1, "v": 3}], "id"), ([], "k"), ([{"v": 4}], "id"), ([{"n": "a", "w": 0}, {"n": "b"}], "n"), ([{"k": 5, "x": 1}, {"k": 5, "y": 2}], "k"), ([{"q": None, "p": 1}], "q"),
       ([{"c": 1, "a": 1}, {"c": 1, "a": 2}], "c"), ([{"z": 7}, {"y": 8}], "z"), ([{"m": 2, "s": "t"}, {"m": 3}], "m"))
def index_records(records, key):
    """Map each value of a field to the other fields of its records, merged; None is left out."""
    index = {}
    for record in records:
        name = record.get(key)
        if name is None:
            continue
        rest = {field: value for field, value in record.items() if field != key}
        index.setdefault(name, {}).update(rest)
    return index


@cases(([{"a": 1}, {"b": 2}],), ([],), ([{}],), ([{"x": 1, "y": 2}, {"y": 3, "x": 4}],), ([{"k": 0}, {"k": None}],), ([{"m": 1, "n": 2}, {"m": 3}],), ([{"p": 5}, {"p": 6}, {"q": 7}],), ([{"c": 1, "b": 2, "a": 3}],), ([{"u": 1, "v": 0}, {"v": 0, "w": 2}],),
       ([{"s": 1}, {}],))
def shared_fields(records):
    """List the fields that every record has, in the order of the first one."""
    if not records:
        return []
    shared = []
    for field in records[0]:
        if all(field in record for record in records[1:]):
            shared.append(field)
    return shared


@cases(({"a": 1, "b": 2}, {"a": 1}), ({"a": 1}, {"a": [1, 2]}), ({}, {"x": 1}), ({"k": 5}, {}), ({"c": "red"}, {"c": ["blue", "green"]}), ({"n": 3}, {"n": 4}), ({"p": 0, "q": 1}, {"p": 0, "q": 2}), ({"m": "u"}, {"m": "u", "v": None}), ({"s": 7}, {"s": [7]}), ({"t": ""}, {"t": ["a", "b"]}))
def fits_filter(record, wanted):
    """Tell if a record has the wanted values; a list gives a choice."""
    for field, value in wanted.items():
        found = record.get(field)
        choices = value if isinstance(value, list) else [value]
        if found not in choices:
            return False
    return True


@cases(({"a": "1"}, {"a": 0}), ({}, {"n": 5}), ({"k": " x "}, {"k": "y"}), ({"k": "  "}, {"k": "y"}), ({"a": "7", "b": "q"}, {"a": 1, "b": ""}), ({"z": "1"}, {}), ({"m": "bad"}, {"m": 3}), ({"p": "", "q": "4"}, {"p": 2, "q": 2}), ({"s": "T", "u": "v"}, {"s": "w"}),
       ({"c": " 12 "}, {"c": 9}), ({"n": "08"}, {"n": 1}))
def read_form(form, defaults):
    """Fill in defaults from a form; an empty entry, or no digits for a number, keeps the default."""
    result = dict(defaults)
    for field, default in defaults.items():
        text = form.get(field, "").strip()
        if isinstance(default, int):
            result[field] = int(text) if text.isdigit() else default
        elif text != "":
            result[field] = text
    return result


@cases(({"a": 1}, {"b": 2}, ["a", "b"]), ({"a": 1}, {"a": 2}, ["a"]), ({}, {}, ["x"]), ({"k": None}, {"k": 3}, ["k"]), ({"m": 0}, {"m": 4}, ["m"]), ({"p": ""}, {"p": "q"}, ["p"]), ({"u": 5, "v": 6}, {}, ["v"]), ({}, {"w": 7, "z": 8}, ["z", "w"]), ({"s": None}, {}, ["s"]),
       ({"c": ""}, {"d": 1}, ["c", "d"]))
def first_filled(first, second, fields):
    """Take each field from the first of two records that has it filled."""
    result = {}
    for field in fields:
        value = first.get(field)
        if value is None or value == "":
            value = second.get(field)
        if value is not None:
            result[field] = value
    return result
