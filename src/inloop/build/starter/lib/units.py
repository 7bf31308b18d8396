"""How much is it in that? Conversions of lengths, weights, temperatures, data sizes and speeds."""

from inloop.build.starter.library import cases

METRES = {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "in": 0.0254, "ft": 0.3048}
GRAMS = {"g": 1, "kg": 1000, "t": 1000000, "oz": 28.35, "lb": 453.6}


@cases((100, "cm", "m"), (1, "km", "m"), (12, "in", "ft"), (5, "m", "cm"), (3, "ft", "in"), (2.5, "km", "mm"), (7, "mile", "m"), (0, "m", "km"), (40, "mm", "cm"), (10, "m", "yd"), (1, "in", "cm"))
def convert_length(value, unit, wanted):
    """Turn a length into another unit; nothing if a unit is unknown."""
    if unit not in METRES or wanted not in METRES:
        return None
    base = value * METRES[unit]
    result = base / METRES[wanted]
    return round(result, 4)


@cases("5 kg", "250g", "1 LB", "2.5 t", "10 stone", "16 oz", " 3kg ", "0 g", "kg", "0.5 kg", "12", "100 oz")
def weight_in_grams(text):
    """Read a weight with its unit and give it in grams."""
    clean = text.strip().lower()
    number = clean.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = clean[len(number):].strip()
    factor = GRAMS.get(unit)
    if not number or factor is None:
        return None
    return round(float(number) * factor, 2)


@cases((0, "C", "F"), (100, "C", "F"), (32, "F", "C"), (0, "C", "K"), (300, "K", "C"), (-40, "F", "C"), (212, "F", "K"), (25, "C", "C"), (273.15, "K", "F"), (98.6, "F", "C"), (50, "F", "F"))
def convert_heat(value, unit, wanted):
    """Turn a temperature of C, F or K into another scale."""
    degrees = value
    if unit == "F":
        degrees = (value - 32) * 5 / 9
    elif unit == "K":
        degrees -= 273.15
    if wanted == "F":
        degrees = degrees * 9 / 5 + 32
    elif wanted == "K":
        degrees += 273.15
    return round(degrees, 2)


@cases((72, "km/h"), (10, "m/s"), (1, "knot"), (36, "km/h"), (100, "mph"), (0, "knot"), (5, "warp"), (25, "mph"), (90, "KM/H"), (3.5, "M/S"), (20, "Knot"))
def speed_in_metres(value, unit):
    """Give a speed in metres a second; a unit that is unknown gives minus one."""
    name = unit.lower()
    if name == "km/h":
        value /= 3.6
    elif name == "mph":
        value *= 0.447
    elif name == "knot":
        value = value * 1852 / 3600
    elif name != "m/s":
        return -1
    return round(value, 2)


@cases(70, 12, 11, 0, 180, 1, 36, 63, 100, 144, 5)
def feet_and_inches(inches):
    """Write a height in inches as feet and inches."""
    feet, rest = divmod(inches, 12)
    pieces = []
    if feet > 0:
        pieces.append(f"{feet} ft")
    if rest > 0 or not pieces:
        pieces.append(f"{rest} in")
    return " ".join(pieces)


@cases((1024, 1), (5000000, 8), (1, 1), (300, 0), (0, 4), (1000, 3), (125, 1000), (80, 640), (10, 80), (9, 71), (4096, 100))
def download_seconds(size, rate):
    """Count the seconds, rounded up, that bytes take at a rate in bits a second."""
    if rate <= 0:
        return None
    bits = size * 8
    seconds, rest = divmod(bits, rate)
    if rest > 0:
        seconds += 1
    return seconds


@cases(0, 7, 8, 9, 1024, 8192, 12345, 65536, 8388608, 100, 16384)
def bits_to_size(bits):
    """Write a number of bits as bytes, KiB or MiB, rounded up to whole bytes."""
    size = (bits + 7) // 8
    units = ["B", "KiB", "MiB"]
    index = 0
    while size >= 1024 and index < len(units) - 1:
        size /= 1024
        index += 1
    return f"{round(size, 1)} {units[index]}"


@cases(1500, 0, 999, 1000, 0.5, 0.02, 2500000, 1000000, -4200, 0.001, 1, 0.00004)
def with_metric_prefix(value):
    """Write a value with k, M or m for thousands, millions and thousandths."""
    amount = abs(value)
    if amount >= 1000000:
        factor, prefix = 1000000, "M"
    elif amount >= 1000:
        factor, prefix = 1000, "k"
    elif amount < 1 and amount > 0:
        factor, prefix = 0.001, "m"
    else:
        factor, prefix = 1, ""
    return f"{round(value / factor, 2)}{prefix}"


@cases((5, 25), (10, 60), (0, 30), (42.2, 200), (3, 14.5), (8, 0), (1, 3.75), (21.1, 105.5), (2, 13), (0, 0), (12, 71))
def running_pace(distance, minutes):
    """Write the minutes and seconds that each kilometre took."""
    if distance <= 0:
        return "-"
    seconds = round(minutes * 60 / distance)
    whole = seconds // 60
    rest = str(seconds % 60).zfill(2)
    return f"{whole}:{rest}"


@cases((7.5, 100), (50, 600), (0, 10), (8, 0), (40, 500), (6.6, 120), (10, 100), (35, 1000), (5, 100), (12, 240), (20, 150))
def fuel_use(litres, distance):
    """Give the litres for a hundred kilometres, the miles a gallon, and a mark."""
    if distance == 0 or litres == 0:
        return None
    use = litres / distance * 100
    miles = 235.21 / use
    mark = "low" if use <= 5 else "high" if use > 8 else "middle"
    return round(use, 1), round(miles, 1), mark


@cases((70, 175), (50, 170), (95, 180), (60, 0), (80, 200), (100, 200), (120, 200), (74, 200), (45, 150), (18, 100), (25, 100), (30, 100))
def body_index(weight, height):
    """Rate a weight in kilograms for a height in centimetres."""
    if height <= 0:
        return "unknown"
    metres = height / 100
    index = weight / metres ** 2
    if index < 18.5:
        return "light"
    if index < 25:
        return "normal"
    return "heavy" if index < 30 else "very heavy"


@cases("N", "E", "S", "W", "NE", "sw", "NNE", "wnw", "X", "", "SE")
def compass_degrees(text):
    """Turn a point of the compass into degrees; nothing if there is none."""
    points = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"]
    name = text.upper()
    if name not in points:
        return None
    index = points.index(name)
    step = 360 / len(points)
    return index * step


@cases((52, 30, 0, "N"), (13, 24, 36, "E"), (0, 0, 0, "N"), (33, 51, 54, "S"), (151, 12, 36, "W"), (10, 0, 30, "s"), (5, 6, 0, "e"), (89, 59, 59, "N"), (45, 15, 0, "w"), (1, 1, 1, "S"), (120, 45, 9, "E"))
def map_degrees(degrees, minutes, seconds, side):
    """Turn a place in degrees, minutes and seconds into one number; south and west are negative."""
    part = minutes / 60 + seconds / 3600
    value = degrees + part
    if side.upper() in ("S", "W"):
        value = -value
    return round(value, 3)


@cases((2, "cup"), (3, "tsp"), (4, "tbsp"), (1, "pinch"), (0.5, "cup"), (6, "tsp"), (16, "tbsp"), (0, "cup"), (10, "CUP"), (4, "cups"), (20, "Tbsp"), (50, "tsp"))
def kitchen_volume(count, unit):
    """Write a kitchen measure in millilitres, or in litres from a thousand on."""
    sizes = {"tsp": 5, "tbsp": 15, "cup": 240}
    name = unit.lower().rstrip("s")
    if name not in sizes:
        return "?"
    volume = count * sizes[name]
    if volume >= 1000:
        return f"{round(volume / 1000, 2)} l"
    return f"{volume} ml"
