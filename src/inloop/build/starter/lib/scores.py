"""Who is best? Grades, rankings, league points, streaks and averages without the worst."""

from inloop.build.starter.library import cases


@cases(95, 90, 89, 80, 75, 70, 60, 59, 0, 100, 101, -1)
def letter_grade(points):
    """Turn points out of a hundred into a grade from A to F."""
    if not 0 <= points <= 100:
        return "?"
    grades = "FDCBA"
    limits = [60, 70, 80, 90]
    level = 0
    for limit in limits:
        if points >= limit:
            level += 1
    return grades[level]


@cases([8, 6, 9], [5], [], [10, 2, 2, 9], [7, 7], [3, 4, 8, 10, 1], [0, 10], [6, 5, 6, 5], [9, 9, 1], [1, 2, 3, 4, 5, 6], [10])
def mean_without_worst(scores):
    """Average the scores after the worst one is left out, if there are more than one."""
    if not scores:
        return 0
    kept = sorted(scores)
    if len(kept) > 1:
        kept = kept[1:]
    total = sum(kept)
    return round(total / len(kept), 2)


@cases(["W", "W", "D"], ["L", "L"], [], ["D", "D", "D", "D"], ["W", "L", "W", "W", "D"], ["w", "d"], ["L", "W"], ["W"], ["X", "W", "L"], ["D", "L", "W", "D", "W"], ["W", "W", "W", "W"])
def league_points(results):
    """Add up three points for each win and one for each draw; tell the games played too."""
    points = 0
    played = 0
    for result in results:
        if result == "W":
            points += 3
        elif result == "D":
            points += 1
        elif result != "L":
            continue
        played += 1
    return points, played


@cases("WWLWWW", "LLL", "", "W", "WLWLW", "DDWWDD", "WWWWL", "LWWLWWWLW", "LLWW", "WDWWDW", "DLDLD")
def longest_win_streak(results):
    """Count the most wins in a row."""
    best = current = 0
    for result in results:
        if result == "W":
            current += 1
            best = max(best, current)
        else:
            current = 0
    return best


@cases("WWLLL", "WWW", "", "L", "WLWDD", "LWWWW", "DDDD", "WL", "LLLLLW", "WDWDLL", "LW")
def last_streak(results):
    """Write the streak at the end, such as L3."""
    if not results:
        return "-"
    last = results[-1]
    count = 0
    for result in reversed(results):
        if result != last:
            break
        count += 1
    return f"{last}{count}"


@cases(({"Ann": 5, "Bob": 7},), ({"A": 3, "B": 3},), ({"X": 1, "Y": 9, "Z": 4},), ({},), ({"Cy": 2, "Al": 2, "Bo": 8},), ({"P": 0},), ({"K": 6, "L": 5, "M": 7},), ({"Z": 1, "A": 1, "M": 2},), ({"N": -1, "O": 0},), ({"T": 4, "S": 4, "R": 4},),
       ({"D": 10, "E": 20, "F": 15},))
def ranking_lines(scores):
    """List the names from the best score down, by name where equal, each with a number."""
    ordered = sorted(scores, key=lambda name: (-scores[name], name))
    lines = []
    for place, name in enumerate(ordered, start=1):
        lines.append(f"{place}. {name}")
    return lines


@cases("2:1", "0:0", "1:3", "5:5", "10:9", "0:4", "abc", "3:", "12:0", "1:2:3", ":1", " 2:2 ")
def match_points(text):
    """Give the points that both sides get for a result such as 2:1."""
    home, _, away = text.strip().partition(":")
    if not home.isdigit() or not away.isdigit():
        return None
    difference = int(home) - int(away)
    if difference == 0:
        return 1, 1
    return (3, 0) if difference > 0 else (0, 3)


@cases([9.5, 8, 7, 9], [6, 6, 6], [10, 1], [], [5, 5.5, 9, 2, 7], [8, 8.5, 9], [0, 10, 10, 10], [7], [3, 4, 5, 6, 7, 8], [9.9, 9.8, 9.7, 2], [1, 1, 9, 9])
def jury_score(marks):
    """Average the marks of a jury without the highest and the lowest."""
    if len(marks) < 3:
        return None
    lowest, highest = min(marks), max(marks)
    total = sum(marks) - lowest - highest
    count = len(marks) - 2
    return round(total / count, 2)


@cases((1500, 1500, "win"), (1600, 1400, "win"), (1400, 1600, "win"), (1500, 1500, "draw"), (1800, 1400, "loss"), (1000, 1200, "draw"), (1500, 1500, "loss"), (2000, 1000, "win"), (1000, 2000, "loss"), (1450, 1550, "draw"), (1700, 1650, "win"))
def new_rating(rating, rival, result):
    """Move a chess rating after a game against a rival."""
    gap = (rival - rating) / 400
    expected = 1 / (1 + 10 ** gap)
    score = {"win": 1, "draw": 0.5}.get(result, 0)
    change = 32 * (score - expected)
    return rating + round(change)


@cases(([50, 80, 65], 60), ([], 50), ([49, 50], 50), ([100, 100], 90), ([10, 20, 30], 40), ([70], 70), ([61, 59, 60, 58], 60), ([0, 0, 1], 1), ([90, 40, 75, 88], 75), ([55, 45], 46), ([33, 66, 99], 33))
def pass_report(scores, limit):
    """Count who passed and who failed, and give the share that passed in percent."""
    passed = [score for score in scores if score >= limit]
    failed = len(scores) - len(passed)
    share = 0
    if scores:
        share = round(len(passed) / len(scores) * 100)
    return {"passed": len(passed), "failed": failed, "percent": share}


@cases(([2, 3], [1, 3]), ([1, 0], [1, 0]), ([], []), ([6, 6, 7], [4, 4, 5]), ([4, 7], [6, 6]), ([3, 3, 3], [6, 2, 6]), ([1], [2]), ([5, 5], [5, 4]), ([0, 2, 1], [2, 0, 3]), ([7, 1, 6], [5, 6, 4]), ([2, 2], [9, 2]))
def sets_won(first, second):
    """Name the player who won more sets, with the count."""
    wins = losses = 0
    for one, other in zip(first, second):
        if one > other:
            wins += 1
        elif one < other:
            losses += 1
    if wins == losses:
        return "draw"
    return f"first {wins}-{losses}" if wins > losses else f"second {losses}-{wins}"


@cases([3, 5, 4, 6], [1, 2, 3], [9, 8], [], [5], [2, 2, 3, 3, 4], [0, 4, 4, 7, 1], [-3, -5, -1], [10, 1, 20, 2, 30], [6, 7, 6, 7, 8], [-2, 0])
def record_rounds(scores):
    """List the rounds in which a player beat the best score so far."""
    rounds = []
    best = None
    for index, score in enumerate(scores):
        if best is None or score > best:
            if best is not None:
                rounds.append(index + 1)
            best = score
    return rounds


@cases(([("A", "B"), ("A", "C")],), ([("B", "A"), ("A", "B")],), ([],), ([("X", "Y")],), ([("A", "B"), ("C", "B"), ("C", "A")],), ([("P", "Q"), ("Q", "P"), ("P", "R")],), ([("K", "L"), ("L", "M")],), ([("D", "E"), ("D", "E"), ("E", "D")],),
       ([("S", "T"), ("T", "U"), ("T", "S")],), ([("N", "O"), ("M", "O")],), ([("G", "F"), ("F", "H"), ("H", "G")],))
def win_balance(games):
    """Give each player the wins minus the losses, from pairs of winner and loser."""
    table = {}
    for best, worst in games:
        table[best] = table.get(best, 0) + 1
        table[worst] = table.get(worst, 0) - 1
    return table
