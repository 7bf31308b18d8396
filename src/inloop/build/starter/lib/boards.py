"""Boards of games, given as rows."""

from inloop.build.starter.library import cases


@cases(["XXX", "O.O", "..."], ["XO.", "XO.", ".OX"], ["X.O", "X.O", "X.."], ["...", "...", "..."], ["XOX", "OXO", "OXO"], ["OO", ".X"], ["X."], ["..", "XX"], [".O", "XO"], ["XXO", "OOX", "XXX"], ["X"])
def line_winner(rows):
    """Name the mark that fills a whole row or column."""
    columns = ["".join(column) for column in zip(*rows)]
    for line in rows + columns:
        mark = line[0]
        if mark != "." and line.count(mark) == len(line):
            return mark
    return None


@cases(["*.", ".."], ["...", ".*.", "..."], ["*"], ["."], ["*.*"], ["**", ".."], ["*..", "...", "..*"], ["....", "*..."], ["***", "*.*", "***"], [".", "*", "."], ["..*.", ".*.."])
def mine_numbers(rows):
    """Write into every free cell how many mines are around it."""
    out = []
    for i, row in enumerate(rows):
        shown = ""
        for j, cell in enumerate(row):
            parts = [line[max(j - 1, 0) : j + 2] for line in rows[max(i - 1, 0) : i + 2]]
            count = "".join(parts).count("*")
            shown += "*" if cell == "*" else str(count)
        out.append(shown)
    return out


@cases((["aab", "abb"], 0, 0), (["aab", "abb"], 1, 2), (["aa", "aa"], 1, 1), (["ab", "ba"], 0, 1), (["x"], 0, 0), (["abc"], 0, 1), (["..#", "#.#", "#.."], 0, 0), (["..#", "#.#", "#.."], 2, 0), (["ooo", "o.o", "ooo"], 2, 1), (["ooo", "o.o", "ooo"], 1, 1), (["aaaa", "bbba", "aaaa"], 2, 0))
def flood_size(rows, row, column):
    """Count the cells that a paint spilt on one cell would cover."""
    wanted = rows[row][column]
    queue = [(row, column)]
    seen = [(row, column)]
    while queue:
        i, j = queue.pop()
        for down, across in [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]:
            inside = 0 <= down < len(rows) and 0 <= across < len(rows[0])
            if inside and rows[down][across] == wanted and (down, across) not in seen:
                seen.append((down, across))
                queue.append((down, across))
    return len(seen)


@cases([".#.", ".#.", ".#."], ["##", "##"], ["#"], ["...", "###", "..."], ["##.", "#..", "..."], ["#.#", "...", "#.#"], ["###", "###", "###"], ["....", ".##.", ".##."], [".#", "#."], ["##", "#."], ["#..", ".#.", "..#"])
def life_step(rows):
    """Give the next generation of a board of living cells."""
    out = []
    for i, row in enumerate(rows):
        line = ""
        for j, cell in enumerate(row):
            parts = [near[max(j - 1, 0) : j + 2] for near in rows[max(i - 1, 0) : i + 2]]
            count = "".join(parts).count("#")
            alive = count == 3 or (cell == "#" and count == 4)
            line += "#" if alive else "."
        out.append(line)
    return out


@cases((["..", ".."], 0, "X"), (["..", "O."], 0, "X"), (["X.", "O."], 0, "X"), (["...", "X.O"], 1, "O"), (["...", "..O", "X.O"], 2, "X"), (["."], 0, "O"), (["...", "XXX"], 2, "O"), (["O", "X"], 0, "O"), (["..", "..", ".X"], 1, "O"), (["....", "XO.."], 3, "X"), ([".X", "XO"], 1, "O"))
def drop_disc(rows, column, mark):
    """Let a disc fall into a column; a full column takes none."""
    for i in range(len(rows) - 1, -1, -1):
        row = rows[i]
        if row[column] == ".":
            changed = row[:column] + mark + row[column + 1 :]
            return rows[:i] + [changed] + rows[i + 1 :]
    return rows


@cases((0, 0, 3), (1, 1, 3), (1, 1, 4), (0, 2, 4), (3, 3, 4), (2, 0, 3), (0, 0, 2), (2, 2, 4), (1, 0, 3), (4, 4, 5), (0, 3, 5))
def knight_targets(row, column, size):
    """List the squares that a knight can jump to."""
    found = []
    for i in range(size):
        for j in range(size):
            dy = abs(i - row)
            dx = abs(j - column)
            if min(dx, dy) == 1 and max(dx, dy) == 2:
                found.append((i, j))
    return found


@cases([1, 3, 0, 2], [0, 1, 2], [0, 0], [0], [], [0, 2, 4, 1, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 1, 1], [0, 3, 1, 1], [0, 2, 0], [4, 1, 2, 0, 3])
def queen_clashes(columns):
    """Count the pairs of queens, one in each row, that threaten each other."""
    count = 0
    for i, column in enumerate(columns):
        for j in range(i):
            gap = abs(column - columns[j])
            if gap == 0 or gap == i - j:
                count += 1
    return count


@cases((["ab", "cd"], 1), (["ab", "cd"], 2), (["ab", "cd"], 3), (["ab", "cd"], 4), (["abc"], 1), (["abc"], 5), (["a", "b"], 1), (["x"], 2), (["abc", "def"], 3), (["ab", "cd"], 0), (["ab", "cd", "ef"], -1))
def turn_board(rows, turns):
    """Turn a board by some quarters to the right."""
    for turn in range(turns % 4):
        columns = zip(*rows[::-1])
        rows = ["".join(column) for column in columns]
    return rows


@cases([2, 2, 0, 0], [2, 0, 2, 4], [0, 0, 0], [4, 4, 4, 4], [2, 2, 2], [0, 8, 0, 8], [2, 4, 2, 4], [], [0, 0, 0, 2], [4, 2, 2, 0], [8, 0, 4, 4], [2, 2, 4])
def slide_tiles(row):
    """Push the tiles of a row to the left; two equal ones unite once."""
    kept = [number for number in row if number != 0]
    out = []
    while kept:
        number = kept.pop(0)
        if kept and kept[0] == number:
            number += kept.pop(0)
        out.append(number)
    space = len(row) - len(out)
    return out + [0] * space


@cases(["o.", ".."], ["oo", "o."], ["o", ".", "."], ["...", "o.o", "..."], ["oo", "oo"], ["..", ".."], ["o..", ".o.", "..o"], ["o.o", "...", "..o"], [".o"], ["o.", "o.", ".."], [".oo.", "o..."])
def settle_stones(rows):
    """Let every stone of a board fall as deep as it can."""
    columns = []
    for column in zip(*rows):
        stones = column.count("o")
        free = len(column) - stones
        columns.append("." * free + "o" * stones)
    return ["".join(line) for line in zip(*columns)]


@cases(["..", "##"], ["#.", "##", "##"], ["...", "#.#"], ["##"], ["###", "#..", "###"], ["."], [".#.", "###", "##."], ["##", ".#", "##", "#."], ["....", ".##.", "####"], ["#", "."], ["##", ".."])
def clear_full_rows(rows):
    """Take out the full rows and let the rest sink."""
    width = len(rows[0])
    kept = [row for row in rows if "." in row]
    removed = len(rows) - len(kept)
    empty = "." * width
    return [empty] * removed + kept


@cases("a1", "h1", "a8", "h8", "e4", "d4", "c7", "i3", "b0", "f6", "g9", "A2")
def square_color(name):
    """Name the color of a square of a chess board."""
    column = "abcdefgh".find(name[0])
    row = int(name[1])
    if column < 0 or not 1 <= row <= 8:
        return "none"
    odd = (column + row) % 2 == 1
    return "dark" if odd else "light"


@cases((["1...", "..2.", "....", ".3.."], 0, 1), (["1...", "..2.", "....", ".3.."], 1, 0), (["1...", "..2.", "....", ".3.."], 2, 3), (["12..", "3...", "....", "...."], 1, 1), (["....", "....", "....", "...."], 2, 2), (["1234", "341.", "2143", "4321"], 1, 3), (["...1", "..2.", "..3.", "...."], 3, 2), (["....", "....", "..41", "..3."], 3, 3), (["4...", ".1..", "....", "3..2"], 0, 3), (["..1.", "2...", "...4", "...."], 3, 0), (["12..", "..1.", "..34", "2..."], 0, 2))
def square_choices(rows, row, column):
    """List the digits that still fit into a cell of a sudoku of four by four."""
    taken = list(rows[row])
    for line in rows:
        taken.append(line[column])
    top = row // 2 * 2
    left = column // 2 * 2
    for other in rows[top : top + 2]:
        taken.extend(other[left : left + 2])
    return [digit for digit in "1234" if digit not in taken]


@cases((["cat", "oxo", "wig"], "ox"), (["cat", "oxo", "wig"], "cow"), (["cat", "oxo", "wig"], "dog"), (["cat", "oxo", "wig"], "at"), (["ab", "ba"], "ba"), (["a", "b", "c"], "bc"), (["abc"], "c"), (["tab", "one", "pen"], "be"), (["tab", "one", "pen"], "en"), (["ab"], "abc"), (["xyx", "zxy"], "yx"))
def find_in_board(rows, word):
    """Find a word that is written across or down a board."""
    for i, row in enumerate(rows):
        if word in row:
            return ("across", i, row.index(word))
    for j, letters in enumerate(zip(*rows)):
        column = "".join(letters)
        if word in column:
            return ("down", column.index(word), j)
    return None


@cases(["##.", "..#"], ["#.#", ".#.", "#.#"], ["###"], ["..."], ["##", "##"], ["#.#.#"], ["#", ".", "#"], ["###", "..#", "###"], ["##.##", "...#."], ["#..", "##.", "..#"], ["#.#", "###", "#.#"], [])
def island_count(rows):
    """Count the pieces of land; cells that share a side are one piece."""
    land = [(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if cell == "#"]
    count = 0
    while land:
        count += 1
        queue = [land.pop()]
        while queue:
            x, y = queue.pop()
            for spot in [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]:
                if spot in land:
                    land.remove(spot)
                    queue.append(spot)
    return count
