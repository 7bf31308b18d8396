"""Shops and stores: carts, stock and orders."""

from inloop.build.starter.library import cases


@cases(([("pen", 2, 1.5)], 0), ([("cup", 1, 10)], 10), ([], 5), ([("a", 3, 2), ("b", 1, 4)], 50), ([("x", 0, 9)], 0), ([("bag", 10, 12)], 0), ([("bag", 10, 10)], 20), ([("t", 4, 12.5)], 0), ([("t", 1, 49.99)], 0), ([("k", 2, 30), ("l", 1, 1)], 25), ([("m", 1, 50)], 100))
def cart_total(cart, percent):
    """Add up a cart, take off a rebate and add postage under 50."""
    total = 0
    for name, count, price in cart:
        total += count * price
    total -= total * percent / 100
    if 0 < total < 50:
        total += 4.5
    return round(total, 2)


@cases(({"pen": 2}, "pen", 1), ({}, "cup", 3), ({"cup": 1}, "cup", -1), ({"a": 1, "b": 2}, "a", -5), ({"x": 4}, "x", 0), ({"k": 9}, "k", 5), ({"k": 3}, "m", 12), ({}, "z", -2), ({"q": 10}, "q", 1), ({"c": 2, "b": 2}, "d", 2))
def add_to_cart(cart, name, more):
    """Put more pieces of a thing into a cart, ten at most; none left, and it goes."""
    result = dict(cart)
    count = result.get(name, 0) + more
    if count > 10:
        count = 10
    if count <= 0:
        result.pop(name, None)
    else:
        result[name] = count
    return result


@cases(({"a": 5}, [("in", "a", 3)]), ({"a": 5}, [("out", "a", 2)]), ({}, [("in", "x", 4)]), ({"k": 1}, [("out", "k", 2)]), ({"m": 2}, [("set", "m", 9)]), ({}, []), ({"p": 3}, [("out", "p", 3), ("in", "q", 1)]), ({"z": 7}, [("in", "z", 1), ("out", "z", 4)]),
       ({"u": 0}, [("out", "v", 1)]), ({"c": 6}, [("out", "c", 5), ("out", "c", 5)]))
def stock_after(stock, moves):
    """Book what comes in and goes out; no level falls under zero."""
    levels = dict(stock)
    for kind, name, count in moves:
        level = levels.get(name, 0)
        if kind == "in":
            levels[name] = level + count
        elif kind == "out":
            levels[name] = max(level - count, 0)
    return levels


@cases(({"a": 5}, {"a": 3}), ({"a": 2}, {"a": 3}), ({}, {"x": 1}), ({"k": 4}, {}), ({"m": 1, "n": 0}, {"m": 1, "n": 2}), ({"p": 6}, {"p": 6}), ({"q": 3, "r": 8}, {"q": 5, "r": 9}), ({"c": 0}, {"c": 0}), ({"s": 10}, {"s": 1, "t": 4}), ({"b": 1, "a": 1}, {"b": 3, "a": 4}))
def short_items(stock, order):
    """Tell how many pieces of each thing an order lacks."""
    missing = {}
    for name in sorted(order):
        wanted = order[name]
        level = stock.get(name, 0)
        if level < wanted:
            missing[name] = wanted - level
    return missing


@cases((10, 3, 5), (0, 1, 0), (7, 2, 10), (2.5, 4, 3), (20, 7, 14), (1, 30, 0), (3.3, 3, 1), (12, 0, 6), (5, 5, 2.5), (0.2, 2, 0), (9, 1, 4))
def reorder_point(sold_per_day, days, reserve):
    """Find the level at which to order again, in whole boxes of five."""
    needed = sold_per_day * days + reserve
    boxes = int(needed // 5)
    if boxes * 5 < needed:
        boxes += 1
    return boxes * 5


@cases(({"a": 2}, {"a": (5, 10)}), ({"a": 5}, {"a": (5, 10)}), ({"a": 6}, {"a": (5, 10)}), ({}, {"x": (1, 4)}), ({"k": 3}, {}), ({"m": 0, "n": 9}, {"m": (2, 8), "n": (3, 12)}), ({"p": 1, "q": 1}, {"p": (1, 6), "q": (2, 6)}), ({"c": 20}, {"c": (5, 10)}), ({"s": 4}, {"s": (4, 4)}), ({}, {}),
       ({"u": 2}, {"u": (3, 7), "v": (0, 5)}))
def refill_plan(stock, limits):
    """Order what is at its low limit or under it up to its high one."""
    orders = {}
    for name, (low, high) in limits.items():
        level = stock.get(name, 0)
        if level <= low:
            amount = high - level
            if amount > 0:
                orders[name] = amount
    return orders


@cases(([3, 4, 5], 8), ([], 5), ([1, 2, 3], 6), ([9, 1], 5), ([2, 2, 2], 4), ([5], 5), ([6], 5), ([4, 3, 2, 1], 5), ([1, 5, 1, 5], 6), ([7, 8, 2], 10), ([3, 3, 3, 3], 7))
def pack_in_order(sizes, room):
    """Fill boxes with things in their order; what fits in no box is left out."""
    boxes = []
    free = 0
    for size in sizes:
        if size > room:
            continue
        if size > free or not boxes:
            boxes.append([])
            free = room
        boxes[-1].append(size)
        free -= size
    return boxes


@cases(([5, 4, 3], 7), ([], 9), ([2, 8, 1], 10), ([6, 6], 6), ([1, 1, 1, 1], 2), ([9], 4), ([7, 5, 3, 2], 10), ([3, 5, 2], 5), ([4, 4, 2, 2], 6), ([8, 7, 2, 3], 10), ([1, 9, 5], 9))
def boxes_needed(sizes, room):
    """Count the boxes for things packed largest first, each where it first fits."""
    spaces = []
    for size in sorted(sizes, reverse=True):
        for index, space in enumerate(spaces):
            if size <= space:
                spaces[index] -= size
                break
        else:
            spaces.append(room - size)
    return len(spaces)


@cases(([("A", 5, 0), ("B", 4, 3)], 2), ([("A", 5, 0), ("B", 4, 3)], 4), ([], 1), ([("S", 2.5, 1)], 3), ([("X", 1, 9), ("Y", 2, 2)], 7), ([("X", 1, 9), ("Y", 2, 2)], 8), ([("M", 3, 0), ("N", 3, 0)], 5), ([("P", 10, 0), ("Q", 8, 5)], 1), ([("U", 0.5, 4), ("V", 1, 1)], 10),
       ([("K", 7, 1), ("L", 6, 0)], 0))
def cheapest_offer(offers, count):
    """Find the seller with the lowest cost, postage included."""
    best = None
    lowest = 0
    for name, price, postage in offers:
        cost = count * price + postage
        if best is None or cost < lowest:
            best = name
            lowest = cost
    return best, lowest


@cases((5, 2, 3), (6, 3, 1.5), (0, 2, 4), (3, 3, 10), (1, 2, 7), (7, 4, 2), (10, 5, 0.99), (4, 2, 2.5), (2, 3, 8), (9, 3, 1), (11, 2, 0.3))
def one_free_price(count, group, price):
    """Price things of which the last one in each full group is free."""
    free = count // group
    paid = count - free
    total = paid * price
    return round(total, 2)


@cases((5, [(1, 10), (10, 8)]), (10, [(1, 10), (10, 8)]), (0, [(1, 5)]), (25, [(1, 3), (20, 2), (50, 1)]), (50, [(1, 3), (20, 2), (50, 1)]), (1, [(1, 9.99)]), (3, [(5, 2)]), (12, [(6, 1.5), (1, 2)]), (4, [(1, 2.25), (4, 2)]), (7, []), (6, [(6, 1.5), (1, 2)]))
def bulk_price(count, tiers):
    """Price a number of pieces by the highest tier that it reaches."""
    reached = 0
    price = None
    for start, unit_price in tiers:
        if reached < start <= count:
            reached = start
            price = unit_price
    if price is None:
        return None
    return round(count * price, 2)


@cases(([(5, 2), (5, 3)], 6), ([(3, 1)], 3), ([(3, 1)], 5), ([], 2), ([(4, 10), (2, 20)], 4), ([(1, 5), (1, 6), (1, 7)], 2), ([(10, 0.5), (10, 1.5)], 15), ([(2, 9)], 0), ([(0, 4), (6, 2)], 3), ([(2, 1), (2, 2), (2, 3)], 5))
def oldest_first_cost(batches, wanted):
    """Take pieces from the oldest batches first; give their cost and what is missing."""
    cost = 0
    rest = wanted
    for count, price in batches:
        taken = min(count, rest)
        cost += taken * price
        rest -= taken
        if rest == 0:
            break
    return cost, rest


@cases(({"a": 3}, [("Ann", "a", 2), ("Bo", "a", 2)]), ({"a": 4}, [("Ann", "a", 2), ("Bo", "a", 2)]), ({}, [("Cy", "x", 1)]), ({"k": 5}, []), ({"m": 1}, [("Di", "m", 2), ("Ed", "m", 1)]), ({"p": 9}, [("Flo", "q", 1), ("Gus", "p", 9)]), ({"c": 2}, [("Hal", "c", 3)]),
       ({"u": 3, "v": 3}, [("Ida", "u", 3), ("Jo", "v", 4)]), ({"s": 6}, [("K", "s", 4), ("L", "s", 3), ("M", "s", 2)]), ({"z": 1}, [("N", "z", 0), ("O", "z", 1)]))
def serve_orders(stock, orders):
    """Name who is served when each order gets all that it asks for or nothing."""
    left = dict(stock)
    served = []
    for name, item, count in orders:
        level = left.get(item, 0)
        if count <= level:
            left[item] = level - count
            served.append(name)
    return served


@cases(({"a": 5}, {"a": 5}), ({"a": 5}, {"a": 4}), ({}, {"x": 2}), ({"k": 3}, {}), ({"m": 1, "n": 2}, {"m": 2, "n": 1}), ({}, {}), ({"p": 8, "q": 0}, {"p": 6}), ({"c": 10}, {"c": 13}), ({"s": 7, "t": 7}, {"s": 7, "t": 9}), ({"u": 4, "v": 1}, {"u": 0, "v": 5}))
def inventory_gap(booked, counted):
    """Sum up how many pieces are lost and how many too many are there."""
    lost = 0
    extra = 0
    for name in sorted(set(booked) | set(counted)):
        gap = counted.get(name, 0) - booked.get(name, 0)
        if gap < 0:
            lost -= gap
        else:
            extra += gap
    return {"lost": lost, "extra": extra}
