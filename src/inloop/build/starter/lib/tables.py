"""Tables: rows as lists or as dicts."""

from inloop.build.starter.library import cases


@cases(([[1, 2, 3]], [0, 2]), ([[1, 2], [3, 4]], [1]), ([], [0]), ([[5]], [0, 1]), ([["a", "b"]], [1, 0]), ([[1, 2], [3]], [1]), ([[7, 8, 9], [4, 5, 6]], [2, 0]), ([[1]], []), ([[2, 4], [6]], [0, 1]), ([["x"], []], [0]),
       ([[0, 9]], [1, 1]))
def select_columns(rows, columns):
    """Keep the columns at these positions, with None where a row is too short."""
    result = []
    for row in rows:
        cells = []
        for index in columns:
            value = row[index] if index < len(row) else None
            cells.append(value)
        result.append(cells)
    return result


@cases(([["b", 2], ["a", 1]], 0, False), ([["b", 1], ["a", 2]], 1, True), ([], 0, False), ([[1, None], [2, 5]], 1, False), ([[1, None], [2, 5]], 1, True), ([[3], [1], [2]], 0, False), ([[3], [1], [2]], 0, True), ([[None], [4], [2]], 0, True),
       ([["x", 9], ["y", 9]], 1, False), ([[None], [None], [1]], 0, False), ([[5, 1], [4, 1], [3, 0]], 1, True))
def sort_rows(rows, column, descending):
    """Sort rows by one column; rows with nothing there come last."""
    filled = [row for row in rows if row[column] is not None]
    empty = [row for row in rows if row[column] is None]
    ordered = sorted(filled, key=lambda row: row[column])
    if descending:
        ordered.reverse()
    return ordered + empty


@cases(([{"a": 1}, {"a": 5}], "a", 2, 9), ([{"a": 2}, {"a": 4}], "a", 2, 4), ([], "x", 0, 1), ([{"n": 3}, {}], "n", 1, 3), ([{"n": 0}, {"n": 7}], "n", 0, 6), ([{"p": None}, {"p": 2}], "p", 1, 2), ([{"q": 8}], "q", 1, 7),
       ([{"z": -1}, {"z": 1}], "z", -1, 0), ([{"v": 5}, {"v": 6}, {"v": 7}], "v", 5, 6), ([{"w": 1}], "u", 0, 9), ([{"h": 10}, {"h": 3}], "h", 4, 12))
def rows_between(rows, field, low, high):
    """Keep the rows whose field lies between two bounds, both included."""
    kept = []
    for row in rows:
        value = row.get(field)
        if value is None:
            continue
        if low <= value <= high:
            kept.append(row)
    return kept


@cases(([["a", 1], ["b", 2], ["a", 3]], 0, 1), ([], 0, 1), ([["x", 5]], 0, 1), ([[4, "k"], [6, "k"]], 1, 0), ([["a", 1], ["b", None]], 0, 1), ([["c", 2], ["c", None], ["c", 2]], 0, 1), ([["n", 0, 7], ["m", 0, 1]], 0, 2), ([["p", -1], ["p", 1]], 0, 1),
       ([[1, 2], [3, 2], [5, 4]], 1, 0), ([["q", 10], ["r", 20], ["q", 30]], 0, 1))
def totals_per_key(rows, key_column, value_column):
    """Add up one column of a table for each key in another."""
    totals = {}
    for row in rows:
        key = row[key_column]
        amount = row[value_column]
        if amount is None:
            amount = 0
        totals[key] = totals.get(key, 0) + amount
    return totals


@cases(([["a", "x", 1], ["a", "y", 2]],), ([["a", "x", 1], ["a", "x", 4]],), ([],), ([["b", "q", 3], ["c", "q", 5]],), ([["m", 1, 2], ["n", 2, 7]],), ([["k", "u", 0], ["k", "v", 6], ["k", "u", 2]],), ([["p", "x", 9]],), ([[1, 1, 1], [2, 2, 2]],),
       ([["a", "z", -1], ["b", "z", 1], ["a", "z", 3]],), ([["s", "t", 10], ["s", "w", 20]],))
def pivot_totals(rows):
    """Turn rows of name, heading and value into a total per name and heading."""
    table = {}
    for name, heading, value in rows:
        line = table.setdefault(name, {})
        line[heading] = line.get(heading, 0) + value
    return table


@cases(([[1], [None], [None]], 0), ([[None], [2], [None]], 0), ([], 0), ([["a", 1], [None, 2], ["b", 3]], 0), ([[1, None], [2, 5], [3, None]], 1), ([[7], [8]], 0), ([[0], [None]], 0), ([[None], [None]], 0), ([[4, 1], [None, None]], 1),
       ([["x"], [None], ["y"], [None]], 0))
def fill_from_above(rows, column):
    """Put into each empty cell of a column what stands above it."""
    result = []
    last = None
    for row in rows:
        cells = list(row)
        if cells[column] is None:
            cells[column] = last
        else:
            last = cells[column]
        result.append(cells)
    return result


@cases(([["n", "a"], ["Ann", 5]],), ([["x"], [1], [2]],), ([],), ([["a", "b"]],), ([["a", "b"], [1]],), ([[" Id ", "Q"], [1, 2]],), ([["Name"], ["Bo"], ["Cy"]],), ([["k", "V"], [0, None]],), ([["A B", "c"], [3, 4]],), ([["m", "n"], [1, 2], [3]],))
def rows_to_records(rows):
    """Turn a table into dicts; its first row gives the keys, trimmed and in small letters."""
    if not rows:
        return []
    fields = [title.strip().lower() for title in rows[0]]
    records = []
    for cells in rows[1:]:
        missing = [None] * (len(fields) - len(cells))
        records.append(dict(zip(fields, cells + missing)))
    return records


@cases(([["b", 2], ["a", 1]], 1), ([["a", 1], ["a", 5]], 1), ([["a", 4], ["a", 3], ["b", 0]], 1), ([], 0), ([["x", 7]], 1), ([["k", 2, 9], ["k", 3, 1]], 2), ([["q", 5], ["r", 5], ["q", 5]], 1), ([["m", -1], ["m", -2]], 1), ([["c", 1], ["b", 1], ["c", 0]], 1),
       ([["z", 3, 1], ["z", 3, 2]], 2))
def top_row_per_key(rows, column):
    """Keep, for each first cell, the first row with the highest value in a column."""
    best = {}
    for row in rows:
        key = row[0]
        if key not in best or row[column] > best[key][column]:
            best[key] = row
    return [best[name] for name in sorted(best)]


@cases(([[1, "a"]], [[1, "b"]]), ([[1, "a"], [2, "c"]], [[2, "d"]]), ([], [[1, 2]]), ([[3, 4]], []), ([["k", 1]], [["k", 2, 3]]), ([[1, 2], [1, 3]], [[1, 4]]), ([["x"]], [["y", 0]]), ([["p", 5], ["q", 6]], [["q", 7], ["p", 8]]), ([[1, 1]], [[1, 2], [1, 3]]),
       ([["m"]], [["m", "n"]]))
def join_on_first(left, right):
    """Join two tables where their first cells agree; of equal ones on the right the last counts."""
    known = {}
    for row in right:
        known[row[0]] = row[1:]
    joined = []
    for record in left:
        key = record[0]
        if key in known:
            joined.append(record + known[key])
    return joined


@cases(([[1, 3], [2, None]], 0), ([[1, 3], [2, None]], 1), ([[None]], 0), ([], 0), ([[1], [2]], 0), ([[5, 1], [7, 2], [9, 6]], 1), ([[0], [None], [4]], 0), ([[2.5], [3]], 0), ([[1], [1], [2]], 0), ([[None, 8], [4, None]], 0), ([[-3], [3], [3]], 0))
def column_mean(rows, column):
    """Average a column, leaving out its empty cells."""
    total = 0
    count = 0
    for row in rows:
        cell = row[column]
        if cell is not None:
            total += cell
            count += 1
    return round(total / count, 2) if count > 0 else None


@cases(([["a", "bb"], ["ccc", "d"]],), ([["x"]],), ([],), ([[1, 22], [333, 4]],), ([["ab", None]],), ([["", "long"], ["s"]],), ([[10], [5, 6]],), ([[None, 1], [2, 34567]],), ([["one", "two"], ["three", "four"]],), ([[3.5, -1], [2, 100]],))
def column_widths(rows):
    """Find the length of the longest cell of each column."""
    widths = []
    for row in rows:
        for index, cell in enumerate(row):
            text = "" if cell is None else str(cell)
            if index >= len(widths):
                widths.append(0)
            widths[index] = max(widths[index], len(text))
    return widths


@cases(([[1, 2], [1, 3], [2, 2]], [0]), ([[1, 2], [1, 2]], [0, 1]), ([], [0]), ([["a", 1], ["b", 1]], [1]), ([["a", 1], ["b", 1], ["a", 1]], [0, 1]), ([[5], [5], [6]], [0]), ([[1, 2, 3], [4, 2, 3]], [1, 2]), ([[None], [None]], [0]),
       ([["x", 0], ["x", 1], ["y", 0]], [0]), ([[7, 8], [8, 7]], [0]), ([[1], [2]], []))
def drop_double_rows(rows, columns):
    """Keep the first of all rows that agree in these columns."""
    seen = []
    kept = []
    for row in rows:
        key = tuple(row[index] for index in columns)
        if key in seen:
            continue
        seen.append(key)
        kept.append(row)
    return kept


@cases(([{"n": "a", "x": 1, "y": 2}], "n"), ([{"n": "b", "x": None}], "n"), ([], "k"), ([{"k": 1, "u": 0}, {"k": 2, "u": 3}], "k"), ([{"k": 1}], "k"), ([{"p": "q", "r": 7}, {"p": "s"}], "p"), ([{"i": 5, "a": "z", "b": None}], "i"), ([{"x": 4}], "y"),
       ([{"d": 1, "v": 8}, {"d": 1, "w": 9}], "d"), ([{"c": "m", "b": 2, "a": 3}], "c"))
def unpivot_records(records, key):
    """Turn each filled field of a record into a row of its own."""
    rows = []
    for record in records:
        name = record.get(key)
        for field in sorted(record):
            value = record[field]
            if field != key and value is not None:
                rows.append([name, field, value])
    return rows
