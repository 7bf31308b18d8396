"""What does it cost? Prices, tax, change, discounts, instalments and tips in whole cents or rounded amounts."""

from inloop.build.starter.library import cases


@cases((10.0, 20), (0, 19), (99.99, 7), (5.5, 0), (1.0, 5), (250, 19), (12.34, 10), (80, 12.5), (3.33, 50), (1000, 8), (20, 100))
def price_with_tax(price, percent):
    """Give the net price, the tax and the price with the tax on it."""
    rate = percent / 100
    tax = round(price * rate, 2)
    total = round(price + tax, 2)
    return price, tax, total


@cases((120.0, 20), (119, 19), (0, 19), (107, 7), (50, 0), (10.5, 5), (99.99, 10), (200, 100), (33, 12), (1190, 19), (8.4, 20))
def tax_inside(total, percent):
    """Split a price that has its tax in it into the net price and the tax."""
    factor = 1 + percent / 100
    price = round(total / factor, 2)
    tax = round(total - price, 2)
    return {"net": price, "tax": tax}


@cases((100, 4), (100, 3), (7, 2), (0, 5), (1, 3), (10, 0), (999, 10), (50, 1), (5, 6), (1234, 7), (20, -1))
def instalments(amount, count):
    """Split an amount of cents into equal rates; the first ones carry the rest."""
    if count < 1:
        return []
    rate = amount // count
    rest = amount % count
    rates = [rate] * count
    for index in range(rest):
        rates[index] += 1
    return rates


@cases((60.0, 15, 3), (100, 10, 4), (45.5, 20, 2), (0, 10, 2), (33, 0, 3), (80, 25, 1), (10, 10, 0), (99.9, 18, 6), (12, 50, 5), (200, 5, 8), (7.77, 12, 2))
def tip_each(amount, percent, guests):
    """Tell what each guest pays for a meal with the tip."""
    if guests <= 0:
        return 0.0
    tip = amount * percent / 100
    total = amount + tip
    share = total / guests
    return round(share, 2)


@cases((5, 10), (10, 10), (20, 2.5), (50, 4), (99, 1), (100, 3), (9, 1.5), (0, 8), (49, 2), (200, 0.99), (1, 7))
def bulk_cost(count, price):
    """Price an order: more pieces bring a larger discount."""
    if count >= 100:
        percent = 20
    elif count >= 50:
        percent = 10
    elif count >= 10:
        percent = 5
    else:
        percent = 0
    total = count * price
    return round(total * (100 - percent) / 100, 2)


@cases([5, 3, 4], [10, 10, 10], [1, 2], [9, 8, 7, 6, 5, 4], [], [6], [3, 1, 2, 5], [2, 2, 2, 2, 2], [20, 1, 15, 7], [0, 5, 5], [12, 11, 1, 1, 8, 3, 9])
def three_for_two(prices):
    """Add up the prices where the cheapest of every three is free."""
    ordered = sorted(prices, reverse=True)
    total = 0
    for index, price in enumerate(ordered):
        if index % 3 != 2:
            total += price
    return total


@cases((1000, 50, 200), (100, 0, 25), (500, 10, 5), (300, 3, 100), (50, 0, 80), (0, 5, 10), (200, 20, 20), (90, 1, 30), (1000, 100, 150), (640, 4, 160), (75, 5, 25))
def months_to_repay(debt, fee, payment):
    """Count the months until a debt is paid when a fee is added each month."""
    if payment <= fee and debt > 0:
        return None
    months = 0
    while debt > 0:
        debt += fee
        debt -= payment
        months += 1
    return months


@cases(("12.50", ","), ("1,99", ","), ("3", ","), ("0,5", ","), ("7.25", "."), ("100.00", "."), ("-4,20", ","), ("1.000,75", ","), ("1,234.5", "."), ("0", "."), (" 8.05 ", "."), (",99", ","))
def to_cents(text, point):
    """Read a price as whole cents; the point is a dot or a comma."""
    other = "," if point == "." else "."
    clean = text.strip().replace(other, "")
    sign = -1 if clean.startswith("-") else 1
    whole, _, part = clean.lstrip("-").partition(point)
    cents = int(part[:2].ljust(2, "0"))
    return sign * (int(whole or 0) * 100 + cents)


@cases((1250, "$"), (5, "$"), (0, "EUR"), (-99, "$"), (123456789, "$"), (100, "kr"), (-150000, "EUR"), (999, "$"), (100000, "kr"), (99999, "$"), (-5, "EUR"))
def price_label(cents, currency):
    """Write cents as a price with its currency and commas."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    amount = f"{whole:,}.{rest:02d}"
    if len(currency) > 1:
        return f"{sign}{amount} {currency}"
    return sign + currency + amount


@cases(5000, 10000, 10001, 0, 25000, 40000, 60000, 100000, 12345, 40001, 9999, -300)
def tax_by_bracket(income):
    """Work out a tax where each part of the income has its own rate; what is over 100000 is free."""
    brackets = [(10000, 0), (40000, 20), (100000, 40)]
    tax, low = 0, 0
    for high, percent in brackets:
        if income > low:
            part = min(income, high) - low
            tax += part * percent / 100
        low = high
    return round(tax, 2)


@cases((20, "SAVE10"), (50, "SAVE10"), (5, "MINUS5"), (3, "MINUS5"), (80, "HALF"), (100, "half"), (99, "HALF"), (40, "NOPE"), (30, ""), (12.5, "minus5"), (200, "Save10"), (100, "HALF"))
def apply_voucher(price, code):
    """Take a voucher off a price, never below zero; half off needs a hundred."""
    name = code.upper()
    if name == "SAVE10":
        price *= 0.9
    elif name == "MINUS5":
        price = max(price - 5, 0)
    elif name == "HALF" and price >= 100:
        price /= 2
    return round(price, 2)


@cases(({"Ann": 30, "Bob": 0, "Cy": 0},), ({"Ann": 10, "Bob": 10},), ({"A": 40, "B": 20},), ({},), ({"X": 9},), ({"A": 5, "B": 7, "C": 9},), ({"P": 100, "Q": 50, "R": 0, "S": 50},), ({"A": 1, "B": 0},), ({"M": 12, "N": 0, "O": 3},),
       ({"K": 0, "L": 0},), ({"U": 8, "V": 6, "W": 1},))
def settle_trip(paid):
    """Tell who gets money back after a trip and who still owes some."""
    if not paid:
        return {}
    share = sum(paid.values()) / len(paid)
    result = {}
    for name, amount in paid.items():
        gap = round(amount - share, 2)
        if gap != 0:
            result[name] = gap
    return result


@cases((100, [10, -20]), (50, []), (0, [5, 5]), (30, [-40, 20]), (10, [-10]), (200, [-50, -60, 30]), (5, [-6, 1, -1]), (75, [25, -100, 1]), (12, [-3, -3, -3, -3, -3]), (40, [-41, -40]), (8, [2, -11, -10]))
def account_after(balance, changes):
    """Run payments over a balance; those that it cannot bear are refused."""
    refused = []
    for change in changes:
        after = balance + change
        if after < 0:
            refused.append(change)
        else:
            balance = after
    return balance, refused


@cases((250, 100), (1000, 50), (99, 0), (0, 10), (5000, 400), (1999, 5), (2000, 5), (300, 300), (750, 20), (4999, 1), (2500, 1001))
def shipping_fee(price, weight):
    """Price a parcel in cents: orders of twenty and more go free unless heavy."""
    heavy = weight > 100
    if price >= 2000 and not heavy:
        return 0
    fee = 390
    if heavy:
        extra = weight - 100
        fee += extra * 2
    return min(fee, 1500)


@cases((500, 348), (1000, 997), (200, 200), (100, 103), (2000, 1262), (50, 12), (300, 299), (1000, 644), (100, 102), (80, 96), (500, 3))
def cash_change(paid, price):
    """Give the change in cents where cash prices go to the nearest five, or what is still owed."""
    rest = price % 5
    if rest >= 3:
        due = price + 5 - rest
    else:
        due = price - rest
    missing = due - paid
    if missing > 0:
        return {"owed": missing}
    return {"due": due, "change": paid - due}
