"""Things that point to other things."""

from inloop.build.starter.library import cases


@cases(({"a": ["b"], "b": ["c"]}, "a"), ({"a": []}, "a"), ({"a": ["b", "c"], "b": ["d"]}, "a"), ({"x": ["y"], "y": ["x"]}, "x"), ({"p": ["q"], "r": ["s"]}, "p"), ({"a": ["b"], "b": ["c"]}, "b"), ({"m": ["n", "o"], "o": ["m"]}, "o"),
       ({"1": ["2", "3"], "3": ["4"], "4": ["1"]}, "1"), ({"u": ["v"]}, "v"), ({"k": ["l", "m"], "l": ["m"]}, "k"))
def reachable(links, start):
    """List in order all that can be reached from a start."""
    found = [start]
    for node in found:
        for other in links.get(node, []):
            if other not in found:
                found.append(other)
    return found


@cases(({"a": ["b"], "b": ["c"]}, "a", "c"), ({"a": ["b"]}, "b", "a"), ({"x": []}, "x", "x"), ({"a": ["b", "c"], "b": ["d"], "c": ["d"]}, "a", "d"), ({"p": ["q"], "q": ["r"], "r": ["s"]}, "p", "s"), ({"m": ["n"], "n": ["m"]}, "m", "n"), ({"u": ["v", "w"], "v": ["w"]}, "u", "w"),
       ({"1": ["2"], "2": ["3"], "3": ["1"]}, "2", "1"), ({"k": ["l"]}, "k", "z"), ({"a": ["b", "e"], "b": ["c"], "c": ["d"], "e": ["d"]}, "a", "d"))
def shortest_way(links, start, goal):
    """Count the steps of the shortest way, or give minus one."""
    steps = {start: 0}
    queue = [start]
    while queue:
        node = queue.pop(0)
        if node == goal:
            return steps[node]
        for other in links.get(node, []):
            if other not in steps:
                steps[other] = steps[node] + 1
                queue.append(other)
    return -1


@cases(([("a", "b"), ("b", "c")], "b"), ([], "x"), ([("x", "y"), ("x", "z")], "x"), ([("p", "q")], "r"), ([("m", "m")], "m"), ([("a", "b"), ("c", "a"), ("d", "a")], "a"), ([("u", "v"), ("v", "u")], "v"), ([("1", "2"), ("2", "3"), ("3", "1")], "3"), ([("k", "l"), ("m", "n")], "l"), ([("e", "f"), ("f", "g"), ("f", "h")], "f"))
def degree(pairs, node):
    """Count the ends of links at a node."""
    count = 0
    for first, second in pairs:
        if first == node:
            count += 1
        if second == node:
            count += 1
    return count


@cases(({"b": ["a"], "a": []},), ({},), ({"x": []},), ({"c": ["b"], "b": ["a"], "a": []},), ({"p": ["q", "r"], "q": [], "r": []},), ({"m": ["n"], "n": ["m"]},), ({"build": ["fetch"], "test": ["build"], "fetch": []},), ({"d": ["c", "a"], "c": ["a"], "a": []},), ({"u": [], "v": ["u"]},), ({"3": ["2"], "2": ["1"], "1": [], "4": ["3", "1"]},))
def task_order(needs):
    """Order tasks so that each stands behind all that it needs."""
    order = []
    waiting = sorted(needs)
    while waiting:
        ready = [task for task in waiting if all(need in order for need in needs[task])]
        if not ready:
            return None
        order.append(ready[0])
        waiting.remove(ready[0])
    return order


@cases(({"a": "b", "b": "c"}, "a"), ({}, "x"), ({"p": "q"}, "q"), ({"m": "n", "n": "o", "o": "p"}, "m"), ({"k": "l"}, "z"), ({"c": "d", "e": "d"}, "e"), ({"1": "2", "2": "3"}, "2"), ({"u": "v", "w": "x"}, "w"), ({"s": "t", "t": "u", "u": "v"}, "t"), ({"g": "h", "h": "i", "j": "i"}, "j"))
def ancestors(parents, name):
    """List the parents of a name up to the root."""
    out = []
    while name in parents:
        name = parents[name]
        out.append(name)
    return out


@cases(([("a", "b"), ("c", "d")],), ([],), ([("a", "b"), ("b", "c")],), ([("x", "x")],), ([("p", "q"), ("r", "s"), ("q", "r")],), ([("m", "n")],), ([("1", "2"), ("3", "4"), ("5", "6")],), ([("u", "v"), ("v", "u")],), ([("a", "b"), ("c", "d"), ("a", "d"), ("e", "f")],), ([("k", "l"), ("m", "n"), ("l", "n")],))
def count_groups(pairs):
    """Count the groups of nodes that hang together."""
    groups = []
    for first, second in pairs:
        joined = {first, second}
        apart = []
        for group in groups:
            if group & joined:
                joined |= group
            else:
                apart.append(group)
        groups = apart + [joined]
    return len(groups)


@cases(({"a": [["b", 3]], "b": []}, ["a", "b"]), ({"a": []}, ["a"]), ({"x": [["y", 2], ["z", 5]], "y": [["z", 1]]}, ["x", "y", "z"]), ({"p": [["q", 4]]}, ["q", "p"]), ({"m": [["n", 1]], "n": [["m", 6]]}, ["m", "n", "m"]), ({"k": [["l", 7]]}, ["k", "l"]), ({"u": [["v", 0]], "v": [["w", 9]]}, ["u", "v", "w"]), ({"s": [["t", 2]]}, ["s", "r"]), ({"c": [["d", 8], ["e", 3]]}, ["c", "e"]), ({"1": [["2", 5]], "2": [["3", 5]]}, ["1", "2", "3"]))
def way_cost(links, way):
    """Add up the costs along a way, or give nothing where a link is missing."""
    total = 0
    for start, end in zip(way, way[1:]):
        costs = dict(links.get(start, []))
        if end not in costs:
            return None
        total += costs[end]
    return total


@cases(([1, [2, [3]]],), ([],), ([[[]]],), ([1, 2],), ([[1], [2]],), ([[[[5]]]],), ([1, [2], [[3]], 4],), ([[], [[]]],), ([[1, [2, 3]], 4],), ([[[7, 8], 9]],))
def depth(items):
    """Tell how deep lists lie in each other."""
    deepest = 0
    for item in items:
        if isinstance(item, list):
            deepest = max(deepest, depth(item))
    return deepest + 1


@cases((["ann", "bob", "cy"], 2), (["x"], 5), (["a", "b"], 1), (["p", "q", "r", "s"], 3), (["one", "two", "three"], 1), (["m", "n", "o"], 4), (["k", "l", "m", "n", "o"], 2), (["u", "v"], 3), (["c", "d", "e", "f"], 4), (["g", "h", "i", "j", "k", "l"], 3))
def last_left(names, step):
    """Go round a circle and take out every so-manieth name until one is left."""
    circle = list(names)
    at = 0
    while len(circle) > 1:
        at = (at + step - 1) % len(circle)
        circle.pop(at)
    return circle[0]


@cases(({"a": 1, "b": 2}, ["b"]), ({}, []), ({"x": 5}, ["x", "x"]), ({"p": 3, "q": 4}, ["p", "q", "r"]), ({"m": 0}, ["m"]), ({"tea": 2, "cake": 4}, ["cake", "tea", "cake"]), ({"k": 7}, ["z"]), ({"u": 1, "v": 9}, ["v", "u"]), ({"pen": 2}, ["pen", "ink", "pen"]), ({"c": 10, "d": 20}, ["d", "d"]))
def bill(prices, orders):
    """Add up the prices of what was ordered and list what has no price."""
    total = 0
    unknown = []
    for order in orders:
        if order in prices:
            total += prices[order]
        else:
            unknown.append(order)
    return total, unknown
