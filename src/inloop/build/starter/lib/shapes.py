"""Areas, rims and boxes, and the steps over a grid."""

from inloop.build.starter.library import cases


@cases((2, 4, 3), (1, 1, 5), (0, 6, 2), (5, 3, 4), (7, 2, 0), (10, 4, 6), (3, 3, 3), (-1, 5, 2), (8, 1, 1), (4, 9, 10))
def trapezoid_area(top, bottom, height):
    """Measure a trapezoid; 0 if a side is negative."""
    if min(top, bottom, height) < 0:
        return 0
    middle = (top + bottom) / 2
    return round(middle * height, 1)


@cases((5, 1), (3, 3), (4, 5), (10, 2), (1, 0), (6, 3), (2, 1), (7, 9), (8, 4), (12, 6))
def ring_area(radius, width):
    """Measure a round ring of a width; a wide one is a full disc."""
    inner = max(radius - width, 0)
    area = 3.14 * (radius**2 - inner**2)
    return round(area, 2)


@cases(((0, 0), (3, 5)), ((1, 1), (1, 1)), ((7, 0), (0, 7)), ((2, 6), (5, 4)), ((-1, -2), (3, 1)), ((4, 4), (4, 9)), ((8, 1), (2, 1)), ((0, 3), (6, 0)), ((5, 5), (3, 9)), ((-3, 2), (-7, 2)))
def king_steps(start, end):
    """Count the steps between two cells if slanted ones are allowed."""
    across = abs(start[0] - end[0])
    down = abs(start[1] - end[1])
    return max(across, down)


@cases(((2, 2, 4, 4), 1), ((0, 0, 5, 3), 2), ((1, 1, 1, 1), 0), ((3, 4, 6, 9), 3), ((5, 0, 8, 2), 1), ((10, 20, 30, 40), 5), ((0, 7, 2, 8), 4), ((6, 6, 9, 9), 6), ((1, 3, 2, 5), 2),
       ((4, 1, 7, 6), 3))
def grow_box(box, margin):
    """Widen a box on all sides, but not below zero."""
    left, top, right, bottom = box
    left = max(left - margin, 0)
    top = max(top - margin, 0)
    return (left, top, right + margin, bottom + margin)


@cases(((0, 0, 4, 3), "in"), ((1, 2, 6, 4), "rim"), ((0, 0, 5, 5), "area"), ((2, 2, 3, 9), "rim"), ((-1, 0, 3, 2), "area"), ((4, 1, 9, 8), "rim"), ((0, 3, 7, 5), "area"), ((1, 1, 1, 6), "rim"),
       ((3, 0, 8, 1), "area"), ((5, 5, 6, 6), "rim"))
def measure_box(box, measure):
    """Give the area of a box, or its rim."""
    left, top, right, bottom = box
    width = right - left
    height = bottom - top
    if measure == "rim":
        return 2 * (width + height)
    return width * height


@cases((0, 0, 10), (25, 7, 10), (99, 100, 10), (5, 5, 5), (1, 3, 4), (14, 29, 7), (64, 31, 32), (3, 8, 2), (120, 45, 50), (11, 6, 3))
def cell_of_point(x, y, size):
    """Name the cell of a grid that a point lies in, as B3."""
    column = x // size
    row = y // size + 1
    return chr(ord("A") + column) + str(row)


@cases(((0, 0), (2, 1)), ((1, 1), (1, 1)), ((3, 0), (0, 0)), ((0, 4), (1, 2)), ((5, 5), (4, 7)), ((-1, 0), (1, 0)), ((2, 3), (2, 0)), ((6, 1), (3, 2)), ((0, 0), (-2, -2)), ((1, 0), (4, 3)))
def grid_moves(start, end):
    """Write the way between two cells in letters."""
    across = end[0] - start[0]
    down = end[1] - start[1]
    moves = "R" * across + "L" * -across
    return moves + "D" * down + "U" * -down


@cases(([(0, 0)],), ([(0, 0), (1, 0)],), ([],), ([(0, 0), (1, 1)],), ([(0, 0), (0, 1), (0, 2)],), ([(0, 0), (1, 0), (0, 1), (1, 1)],), ([(2, 2), (3, 2), (3, 3)],), ([(5, 1), (9, 1), (9, 2)],),
       ([(1, 1), (2, 1), (3, 1), (2, 2)],), ([(4, 0), (4, 2)],))
def cell_rim(cells):
    """Measure the rim around some cells of a grid."""
    total = 4 * len(cells)
    for x, y in cells:
        if (x + 1, y) in cells:
            total -= 2
        total -= 2 * cells.count((x, y + 1))
    return total


@cases(([(0, 0), (3, 4)],), ([(1, 1)],), ([],), ([(0, 0), (2, 0), (2, 5)],), ([(4, 1), (1, 4), (4, 4)],), ([(-2, 0), (2, 0)],), ([(0, 9), (0, 3), (6, 3)],), ([(5, 5), (5, 5)],),
       ([(1, 0), (0, 1), (7, 7)],), ([(8, 2), (6, 1), (6, 6)],))
def trail_length(points):
    """Add up the grid steps from point to point."""
    total = 0
    for left, right in zip(points, points[1:]):
        total += abs(left[0] - right[0])
        total += abs(left[1] - right[1])
    return total


@cases((10, 6, 4), (8, 8, 2), (0, 5, 3), (7, 1, 5), (9, 9, 3), (100, 40, 30), (5, 12, 12), (3, 4, 1), (20, 11, 10), (6, 0, 6))
def tiles_to_cover(width, height, size):
    """Count the square tiles that cover a floor."""
    across = (width + size - 1) // size
    down = (height + size - 1) // size
    return across * down


@cases((3, 4), (-2, 5), (-1, -6), (7, -3), (0, 2), (5, 0), (0, 0), (-9, 1), (-4, -4), (2, -8), (6, 6))
def quarter_of_plane(across, height):
    """Name the quarter of a point."""
    if across * height == 0:
        return "axis"
    side = "right" if across > 0 else "left"
    half = "upper" if height > 0 else "lower"
    return half + " " + side


@cases((3, 0, 2), (1, 4, 3), (0, 0, 2), (5, 5, 1), (4, 2, 4), (2, 1, 0), (6, 3, 5), (2, 7, 2), (1, 1, 1), (8, 0, 3))
def slanted_cells(x, y, steps):
    """List the cells that steps down to the left reach."""
    cells = []
    for step in range(1, steps + 1):
        if step <= x:
            cells.append((x - step, y + step))
    return cells
