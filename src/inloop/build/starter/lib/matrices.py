"""Tables of numbers as lists of rows."""

from inloop.build.starter.library import cases


@cases(([[1, 2], [3, 4]],), ([[1, 2, 3]],), ([[5]],), ([],), ([[1], [2], [3]],), ([[0, 1], [2, 3], [4, 5]],), ([["a", "b"]],), ([[7, 8, 9], [1, 2, 3]],), ([[2, 2], [9, 9]],),
       ([[6], [0]],))
def transpose(rows):
    """Swap the rows and columns of a table."""
    out = []
    for column in zip(*rows):
        out.append(list(column))
    return out


@cases(([[1, 2], [3, 4]], [[5, 6], [7, 8]]), ([[2]], [[3]]), ([[1, 0], [0, 1]], [[4, 5], [6, 7]]), ([[1, 2, 3]], [[1], [2], [3]]), ([[0, 1]], [[2, 3], [4, 5]]), ([[1], [2]], [[3, 4]]),
       ([[2, 0], [0, 3]], [[1, 1], [1, 1]]), ([[-1, 1]], [[1], [1]]), ([[3, 1], [2, 2]], [[0, 1], [1, 0]]), ([[5, 5]], [[1, 2], [0, 3]]))
def multiply(first, second):
    """Multiply two tables."""
    out = []
    for row in first:
        line = []
        for column in zip(*second):
            line.append(sum(a * b for a, b in zip(row, column)))
        out.append(line)
    return out


@cases(([[1, 2], [3, 4]],), ([[5]],), ([[1, 0, 0], [0, 2, 0], [0, 0, 3]],), ([[0, 9], [9, 0]],), ([[2, 1], [1, -2]],), ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), ([[10, 0], [0, 10]],), ([[-1]],),
       ([[6, 1, 1], [2, 6, 2], [3, 3, 6]],), ([[4, 7], [7, 1]],))
def diagonal_sum(rows):
    """Add up the numbers from the first corner of a table to the last one."""
    total = 0
    for index in range(len(rows)):
        total += rows[index][index]
    return total


@cases((2,), (1,), (3,), (0,), (4,), (5,), (6,), (7,), (8,), (9,))
def identity(size):
    """Make a square table with ones from corner to corner."""
    rows = []
    for i in range(size):
        row = [0] * size
        row[i] = 1
        rows.append(row)
    return rows


@cases(([[1, 2], [2, 1]],), ([[1, 2], [3, 1]],), ([[5]],), ([[0, 1, 2], [1, 0, 3], [2, 3, 0]],), ([[0, 1, 2], [1, 0, 3], [2, 4, 0]],), ([[7, 8], [8, 9]],), ([[1, 0], [1, 1]],), ([],),
       ([[2, 2], [2, 2]],), ([[0, -1], [1, 0]],))
def is_symmetric(rows):
    """Tell if a square table is the same when rows and columns are swapped."""
    for i in range(len(rows)):
        for j in range(i):
            if rows[i][j] != rows[j][i]:
                return False
    return True


@cases(([[1, 2], [3, 4]],), ([[5]],), ([],), ([[0, 0], [1, 1]],), ([[1], [2], [3]],), ([[-1, 1], [2, -2]],), ([[10, 20, 30]],), ([[7, 7], [0, 1]],), ([[4, 5], [6, 7], [8, 9]],), ([[2, 2, 2], [3, 3, 3]],))
def column_sums(rows):
    """Add up each column of a table."""
    if not rows:
        return []
    sums = [0] * len(rows[0])
    for row in rows:
        for index, number in enumerate(row):
            sums[index] += number
    return sums


@cases(([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), ([[1, 2], [3, 4]],), ([[5]],), ([[1, 2, 3]],), ([[1], [2]],), ([[1, 2], [3, 4], [5, 6]],), ([[1, 2, 3, 4], [5, 6, 7, 8]],), ([],), ([["a", "b"], ["d", "c"]],),
       ([[0, 1, 2], [7, 8, 3], [6, 5, 4]],))
def spiral(rows):
    """List the cells of a table from the outside to the inside."""
    out = []
    while rows:
        out.extend(rows[0])
        rest = rows[1:]
        rows = [list(column) for column in zip(*rest)][::-1]
    return out


@cases((["#.", ".#"], 0, 0), (["###", "#.#", "###"], 1, 1), (["...", ".#.", "..."], 0, 0), (["#"], 0, 0), ([".#.", "#.#"], 0, 1), (["##", "##"], 1, 1), (["....", "####"], 0, 3), ([".", "#"], 1, 0),
       (["#..", "...", "..#"], 1, 1), (["#.#", ".#.", "#.#"], 1, 1))
def neighbours(grid, row, column):
    """Count the marked cells around a cell."""
    count = 0
    for i in range(max(row - 1, 0), min(row + 2, len(grid))):
        for j in range(max(column - 1, 0), min(column + 2, len(grid[0]))):
            if grid[i][j] == "#" and (i, j) != (row, column):
                count += 1
    return count


@cases(([[3, 1], [2, 5]],), ([[4]],), ([[1, 9], [9, 1]],), ([[0, -1], [-2, 0]],), ([[1, 2, 3], [4, 5, 6]],), ([[7, 7]],), ([[2], [8], [5]],), ([[-5, -3], [-4, -9]],), ([[10, 0], [0, 11]],), ([[6, 2, 6]],))
def largest_cell(rows):
    """Find the row and column of the largest number; the first one counts."""
    best = (0, 0)
    for i, row in enumerate(rows):
        for j, number in enumerate(row):
            if number > rows[best[0]][best[1]]:
                best = (i, j)
    return best


@cases((2, 3, 0), (1, 1, 7), (0, 5, 1), (3, 2, "x"), (2, 2, None), (4, 1, 9), (1, 4, 2), (3, 3, "."), (2, 1, -1), (5, 0, 3))
def make_grid(height, width, value):
    """Make a table that holds one value everywhere."""
    grid = []
    for index in range(height):
        grid.append([value] * width)
    return grid


@cases(([[1, 2], [3, 4]], 10), ([[0]], 5), ([], 2), ([[1, -1]], 3), ([[2, 4], [6, 8]], 0), ([[5]], -1), ([[1, 2, 3]], 2), ([[7], [8]], 4), ([[9, 1], [1, 9]], 6), ([[3, 0, 3]], 1))
def scale(rows, factor):
    """Multiply every number of a table."""
    return [[number * factor for number in row] for row in rows]
