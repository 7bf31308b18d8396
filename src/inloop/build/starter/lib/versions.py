"""Version texts: reading, comparing, bumping and choosing."""

from inloop.build.starter.library import cases


@cases("1.2.3", "v2.0", "1.4-rc1", "V3.10.2", "7", "", "1.0.0+linux", "2.x.5", "v1.2.3-beta+5", "0.0.9", "10.20.30.40")
def version_numbers(text):
    """Read the numbers of a version, without a leading v, up to - or + or a part that is no number."""
    head = text.lower().lstrip("v")
    for mark in ("+", "-"):
        head = head.split(mark)[0]
    numbers = []
    for part in head.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return numbers


@cases(("1.2", "1.2.0"), ("1.10", "1.9"), ("2.0", "2.0.1"), ("3", "2.9.9"), ("0.1", "0.2"), ("1.0.0", "1"), ("4.5.6", "4.5.6"), ("1.2.3", "1.2"), ("9", "10"), ("2.11.1", "2.2.11"), ("1", "1.0.0.1"))
def compare_versions(first, second):
    """Answer -1, 0 or 1 as the first version is older, equal or newer; missing parts are 0."""
    left = [int(part) for part in first.split(".")]
    right = [int(piece) for piece in second.split(".")]
    size = max(len(left), len(right))
    left += [0] * (size - len(left))
    right += [0] * (size - len(right))
    for low, high in zip(left, right):
        if low != high:
            return -1 if low < high else 1
    return 0


@cases(("1.2.3", "major"), ("1.2.3", "minor"), ("1.2.3", "patch"), ("0.9", "minor"), ("4", "patch"), ("2.0.9", "patch"), ("1.9.9", "minor"), ("0.0.1", "major"), ("1.2.3", "none"), ("1.2.3.4", "patch"), ("9.9.9", "major"))
def bump_version(version, level):
    """Raise one part of a version and set the parts after it to zero."""
    levels = ["major", "minor", "patch"]
    if level not in levels:
        return version
    numbers = [int(part) for part in version.split(".")][:3]
    while len(numbers) < len(levels):
        numbers.append(0)
    index = levels.index(level)
    numbers[index] += 1
    for later in range(index + 1, len(numbers)):
        numbers[later] = 0
    return ".".join(str(number) for number in numbers)


@cases(["1.2", "1.10", "1.9"], ["2.0"], [], ["0.1", "0.1.1", "0.0.9"], ["1.0", "1.0.0"], ["3.0-rc1", "2.9"], ["4.1", "4.1", "4.0"], ["10", "9", "8.9.9"], ["1.0-a", "2.0-b"], ["5.5", "5.10-rc2", "5.6"], ["0.9", "1.0-x", "0.10"])
def newest_version(versions):
    """Find the newest version that is no trial release."""
    best = None
    highest = []
    for version in versions:
        if "-" in version:
            continue
        numbers = [int(part) for part in version.split(".")]
        if best is None or numbers > highest:
            best = version
            highest = numbers
    return best


@cases(("1.2.3", "1.0", "2.0"), ("2.0", "1.0", "2.0"), ("1.0", "1.0", "2.0"), ("0.9", "1.0", ""), ("3.1", "", "3.0"), ("3.1", "", ""), ("1.10", "1.9", "1.11"), ("5", "4.9", ""), ("1.9", "1.10", "2"), ("2.0.1", "", "2.0.1"), ("0.1", "", "0.2"))
def in_version_span(version, low, high):
    """Tell if a version is at least the low end and below the high end; an empty end is open."""
    numbers = [int(part) for part in version.split(".")]
    if low and numbers < [int(piece) for piece in low.split(".")]:
        return False
    if not high:
        return True
    end = [int(segment) for segment in high.split(".")]
    return numbers < end


@cases(("1.4.0", "1.2.3"), ("2.0.0", "1.2.3"), ("1.2.2", "1.2.3"), ("0.2.5", "0.2.3"), ("0.3.0", "0.2.3"), ("0.0.4", "0.0.3"), ("0.0.3", "0.0.3"), ("1.2.3", "1.2.3"), ("3.0.0", "3.0.0"), ("1.10.0", "1.9.0"), ("0.2.3", "0.2.4"))
def caret_allows(version, base):
    """Tell if a version is not older than a base and keeps its first part that is not zero."""
    numbers = [int(part) for part in version.split(".")]
    origin = [int(piece) for piece in base.split(".")]
    if numbers < origin:
        return False
    index = 0
    while index < len(origin) - 1 and origin[index] == 0:
        index += 1
    return numbers[:index + 1] == origin[:index + 1]


@cases("~1.2.3", "~1.2", "~1", "1.4", "^1.2.3", "^0.3.1", "^2", "~0.9.9", "^0.0", "3", "~2.10")
def requirement_ends(text):
    """Give the first version that a short requirement allows and the first that it no longer does."""
    sign = text[0]
    numbers = [int(part) for part in text.lstrip("~^").split(".")]
    low = (numbers + [0, 0])[:3]
    if sign == "^":
        high = [low[0] + 1, 0, 0] if low[0] > 0 else [0, low[1] + 1, 0]
    elif sign == "~":
        high = [low[0], low[1] + 1, 0] if len(numbers) > 1 else [low[0] + 1, 0, 0]
    else:
        high = [low[0], low[1], low[2] + 1]
    return [".".join(map(str, end)) for end in (low, high)]


@cases(("1.2.3", "2.0.0"), ("1.2.3", "1.3.0"), ("1.2.3", "1.2.4"), ("1.2.3", "1.2.3"), ("1.2.3", "1.1.9"), ("2.0.0", "1.9.9"), ("0.1.0", "0.10.0"), ("3.3.3", "3.3.2"), ("1.9.0", "10.0.0"), ("0.0.0", "0.0.1"), ("4.1.0", "4.1.0"))
def version_change(before, after):
    """Name the part by which a version of three parts grew."""
    earlier = [int(part) for part in before.split(".")]
    later = [int(piece) for piece in after.split(".")]
    levels = ("major", "minor", "patch")
    for level, start, end in zip(levels, earlier, later):
        if end > start:
            return level
        if end < start:
            return "older"
    return "same"


@cases((["1.0", "1.1-rc1"], False), (["2.0-a", "2.0-b"], True), ([], True), (["0.1", "0.2"], True), (["1.0", "1.1-rc1"], True), (["3.0", "1.0", "2.0"], False), (["1.10", "1.9"], False), (["1-x", "1"], True), (["1", "1-x"], True),
       (["5.1-b", "5.0"], False), (["2.0", "2.0-rc", "1.9"], True))
def sort_releases(versions, trials):
    """Put versions in order, oldest first, with or without trial releases; a trial stands before its release."""
    ranked = []
    for version in versions:
        head, mark, tail = version.partition("-")
        if mark and not trials:
            continue
        numbers = [int(part) for part in head.split(".")]
        ranked.append((numbers, not mark, tail, version))
    return [entry[-1] for entry in sorted(ranked)]


@cases(("1.4", ">=1.2"), ("1.2", ">1.2"), ("1.1", "<1.2"), ("1.2", "<=1.2"), ("1.2", "==1.2"), ("1.3", "!=1.2"), ("1.2", "!=1.2"), ("2.0", "<=1.9"), ("1.10", ">1.9"), ("0.9", ">=1.0"), ("3.1", "==3.2"), ("2.5", "2.5"))
def meets_requirement(version, requirement):
    """Tell if a version meets a requirement such as >=1.2; without a sign it has to be equal."""
    sign = requirement.rstrip("0123456789.")
    wanted = [int(part) for part in requirement[len(sign):].split(".")]
    numbers = [int(piece) for piece in version.split(".")]
    if sign == "!=":
        return numbers != wanted
    if numbers == wanted:
        return "=" in sign or sign == ""
    if sign.startswith(">"):
        return numbers > wanted
    return sign.startswith("<") and numbers < wanted


@cases(["1.2", "1.10", "2.0"], ["3.1"], [], ["0.1", "0.2", "0.1"], ["2.5", "1.1", "2.4"], ["10.0", "1.0"], ["4.0.1", "4.0.0", "4.0"], ["1.9", "1.9.1", "2.0", "3.3"], ["7", "7.0", "8"], ["5.2", "5.11", "6.0", "6.0.1"])
def newest_of_major(versions):
    """Map each first number to its newest version."""
    best = {}
    for version in versions:
        numbers = [int(part) for part in version.split(".")]
        major = numbers[0]
        if major not in best or numbers > best[major]:
            best[major] = numbers
    return {key: ".".join(str(number) for number in value) for key, value in best.items()}


@cases(("1.2", 3), ("1.2.3", 2), ("4", 4), ("v1.0", 3), ("1.2-rc1", 3), ("1.2.3.4", 3), ("01.02", 2), ("2.0-b-c", 3), ("7", 1), ("v3-x", 2), ("0.10.007", 3))
def padded_version(text, size):
    """Give a version a number of parts, without v or leading zeros; what follows the first - stays."""
    head, dash, tail = text.partition("-")
    parts = head.lstrip("v").split(".")
    missing = size - len(parts)
    if missing > 0:
        parts += ["0"] * missing
    shown = [part.lstrip("0") or "0" for part in parts[:size]]
    return ".".join(shown) + dash + tail


@cases("1.0-rc1", "1.0", "2.3-beta9", "0.1-a", "4.0-rc10", "1.2.3-dev0", "1.9", "3-alpha", "2.0.9", "5.5-b99", "7")
def next_trial(version):
    """Name the trial release that comes after a version."""
    head, dash, label = version.partition("-")
    if not dash:
        parts = head.split(".")
        parts[-1] = str(int(parts[-1]) + 1)
        return ".".join(parts) + "-rc1"
    name = label.rstrip("0123456789")
    digits = label[len(name):]
    count = int(digits or "0") + 1
    return f"{head}-{name}{count}"


@cases(("1.4.2", "1.*"), ("2.0", "1.*"), ("1.4", "1.4"), ("1.4", "1.4.*"), ("3.1.5", "3.*.5"), ("3.1.5", "3.*.6"), ("1.4", "1.4.2"), ("7", "*"), ("1.4.2", "1.4"), ("10.1", "1.*"), ("1.04", "1.4"), ("2", "2.3.*"))
def wildcard_allows(version, pattern):
    """Tell if a version fits a pattern; a star is any number, and a last star also stands for none or more."""
    parts = version.split(".")
    wanted = pattern.split(".")
    is_open = wanted[-1] == "*"
    if is_open:
        wanted.pop()
    fits = len(parts) >= len(wanted) if is_open else len(parts) == len(wanted)
    for part, sought in zip(parts, wanted):
        if sought != "*" and int(part) != int(sought):
            fits = False
    return fits
