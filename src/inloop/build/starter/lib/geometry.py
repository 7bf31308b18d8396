"""Points, boxes and shapes in the plane."""

import math

from inloop.build.starter.library import cases


@cases((0, 0, 3, 4), (1, 1, 1, 1), (0, 0, 0, 5), (-1, -1, 2, 3), (2, 3, 8, 11), (5, 0, -7, 5), (1, 2, 1, -2), (0, 0, 8, 15), (10, 4, 4, 12), (-3, 6, 3, 6))
def distance(x1, y1, x2, y2):
    """Measure the way between two points."""
    width = x2 - x1
    height = y2 - y1
    return round(math.sqrt(width * width + height * height), 3)


@cases(([0, 0], [3, 4]), ([1, 1], [1, 1]), ([2, 5], [-1, 1]), ([0, 9], [9, 0]), ([-2, -3], [2, 3]), ([7, 0], [0, 0]), ([4, 4], [6, 1]), ([5, 8], [5, 2]), ([-1, 0], [0, -1]),
       ([10, 10], [8, 13]))
def taxi_distance(first, second):
    """Measure the way between two points along a grid."""
    total = 0
    for left, right in zip(first, second):
        total += abs(left - right)
    return total


@cases(((0, 0, 4, 3), (1, 1)), ((0, 0, 4, 3), (4, 3)), ((0, 0, 4, 3), (5, 1)), ((1, 1, 2, 2), (0, 0)), ((-1, -1, 1, 1), (0, 0)), ((2, 2, 6, 6), (2, 7)), ((0, 0, 1, 1), (1, 2)),
       ((3, 0, 9, 2), (4, 0)), ((0, 5, 5, 9), (3, 4)), ((-4, 0, 0, 4), (-4, 2)))
def in_box(box, point):
    """Tell if a point lies in a box or on its edge."""
    left, top, right, bottom = box
    x, y = point
    return left <= x <= right and top <= y <= bottom


@cases(((0, 0, 2, 2), (1, 1, 3, 3)), ((0, 0, 1, 1), (2, 2, 3, 3)), ((0, 0, 4, 4), (1, 1, 2, 2)), ((0, 0, 2, 2), (2, 0, 4, 2)), ((0, 0, 5, 1), (4, 0, 6, 3)),
       ((1, 5, 3, 7), (0, 0, 4, 6)), ((0, 0, 1, 9), (0, 9, 1, 10)), ((2, 2, 5, 5), (6, 3, 7, 4)), ((-2, -2, 0, 0), (-1, -1, 1, 1)), ((0, 3, 3, 6), (1, 0, 2, 2)))
def overlap_area(first, second):
    """Measure the area that two boxes share."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0
    return width * height


@cases((3, 4, 5), (1, 1, 5), (2, 2, 2), (5, 5, 8), (1, 2, 3), (7, 10, 7), (6, 8, 10), (0, 1, 1), (9, 4, 4), (4, 5, 6))
def triangle_kind(a, b, c):
    """Name a triangle by its sides."""
    short, middle, long = sorted([a, b, c])
    if short + middle <= long:
        return "none"
    if short == long:
        return "equal"
    if short == middle or middle == long:
        return "isosceles"
    return "other"


@cases(([(0, 0), (4, 0), (4, 3), (0, 3)],), ([(0, 0), (2, 0), (0, 2)],), ([(0, 0), (1, 1)],), ([(0, 0), (3, 0), (3, 3)],), ([(1, 1), (5, 1), (5, 2), (1, 2)],),
       ([(0, 0), (6, 0), (3, 4)],), ([(0, 0), (0, 2), (2, 2), (2, 0)],), ([(2, 1), (7, 1), (4, 6)],), ([(0, 0), (8, 0), (8, 1)],), ([(-1, 0), (0, 1), (1, 0), (0, -1)],))
def polygon_area(points):
    """Measure the area inside a closed line of points."""
    total = 0
    for index in range(len(points)):
        x1, y1 = points[index - 1]
        x2, y2 = points[index]
        total += x1 * y2 - x2 * y1
    return abs(total) / 2


@cases(([(1, 2), (3, 0)],), ([(5, 5)],), ([(0, 0), (-2, 4), (1, 1)],), ([(9, 1), (3, 7), (4, 4)],), ([(2, 2), (2, 8)],), ([(-1, -5), (-3, -2)],), ([(6, 0), (0, 6)],),
       ([(1, 1), (2, 3), (5, 2), (4, 0)],), ([(10, 20), (30, 5)],), ([(7, 3), (7, 3)],))
def bounding_box(points):
    """Give the corners of the smallest box around some points."""
    xs = [point[0] for point in points]
    ys = [point[1] for point in points]
    return (min(xs), min(ys), max(xs), max(ys))


@cases(([(0, 0), (2, 4)],), ([(1, 1)],), ([(0, 0), (3, 0), (0, 3)],), ([(2, 6), (4, 2)],), ([(-1, 1), (1, -1)],), ([(5, 0), (7, 0), (9, 3)],), ([(10, 20), (20, 40)],), ([(0, 8), (8, 0)],),
       ([(1, 2), (3, 4), (5, 6), (7, 8)],), ([(4, 4), (4, 8)],))
def centroid(points):
    """Average some points."""
    count = len(points)
    x = sum(point[0] for point in points) / count
    y = sum(point[1] for point in points) / count
    return (x, y)


@cases((1, 0, 90), (0, 1, 90), (2, 3, 180), (1, 1, 360), (3, 4, 270), (5, 0, 180), (0, 2, 270), (-1, 2, 90), (4, -3, 450), (2, 2, 0))
def turn_point(x, y, degrees):
    """Turn a point about the origin by steps of ninety degrees."""
    steps = degrees // 90 % 4
    for step in range(steps):
        x, y = -y, x
    return (x, y)


@cases("UUR", "", "LLDD", "RULD", "UxR", "DDD", "RRRU", "LUL", "URDL", "UU")
def walk(moves):
    """Follow the letters of a way over a grid."""
    x = y = 0
    for move in moves:
        if move == "U":
            y += 1
        elif move == "D":
            y -= 1
        elif move == "R":
            x += 1
        elif move == "L":
            x -= 1
    return (x, y)


@cases((350, 10), (0, 180), (90, 90), (10, 350), (45, 300), (200, 20), (270, 0), (5, 15), (359, 1), (120, 240))
def angle_between(first, second):
    """Give the smaller angle between two directions."""
    turn = abs(first - second) % 360
    if turn > 180:
        turn = 360 - turn
    return turn


@cases(((0, 0), 5, (3, 4)), ((0, 0), 5, (4, 4)), ((1, 1), 0, (1, 1)), ((2, 2), 1, (3, 3)), ((0, 0), 10, (6, 7)), ((-1, 0), 2, (1, 0)), ((5, 5), 3, (5, 9)), ((3, 1), 4, (0, 3)),
       ((0, 2), 2, (2, 2)), ((7, 7), 1, (9, 7)))
def in_circle(center, radius, point):
    """Tell if a point lies in a circle or on its line."""
    dx = point[0] - center[0]
    dy = point[1] - center[1]
    return dx**2 + dy**2 <= radius**2


@cases((4, 2), (1, 1), (0, 5), (10, 3), (2, 8), (7, 7), (6, 1), (3, 9), (12, 4), (5, 2))
def frame(width, height):
    """Count the cells on the edge of a grid."""
    if width == 0 or height == 0:
        return 0
    if width == 1 or height == 1:
        return width * height
    return 2 * (width + height) - 4
