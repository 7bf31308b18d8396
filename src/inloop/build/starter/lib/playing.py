"""Games: cards, dice, boards, pairings and words."""

from inloop.build.starter.library import cases


@cases(["A", "K"], ["A", "A"], ["10", "5"], ["K", "Q", "J"], ["A", "9", "A"], [], ["7", "7", "7"], ["A", "5", "10"], ["2", "3"], ["A", "A", "K", "9"], ["J", "A", "4"])
def blackjack_points(cards):
    """Add up a hand; an ace counts eleven unless that is too much."""
    total = 0
    aces = 0
    for card in cards:
        if card == "A":
            aces += 1
            total += 11
        else:
            total += 10 if card in ("J", "Q", "K") else int(card)
    while total > 21 and aces > 0:
        total -= 10
        aces -= 1
    return total


@cases([2, 2, 3, 4, 5], [2, 2, 3, 3, 5], [2, 2, 2, 4, 5], [2, 2, 2, 3, 3], [7, 7, 7, 7, 1], [1, 2, 3, 4, 6], [9, 8, 9, 8, 9], [5, 1, 5, 4, 3], [6, 4, 6, 1, 4], [10, 10, 3, 10, 2], [8, 8, 1, 8, 8])
def poker_hand_kind(ranks):
    """Name a hand of five by how often its ranks come."""
    counts = sorted([ranks.count(rank) for rank in set(ranks)], reverse=True)
    most = counts[0]
    if most == 4:
        return "four"
    if most == 3:
        return "full house" if counts[1] == 2 else "three"
    if most == 2:
        pairs = counts.count(2)
        return "two pairs" if pairs > 1 else "pair"
    return "nothing"


@cases([1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [1, 2, 3, 4, 6], [1, 1, 2, 3, 4], [6, 5, 3, 4, 1], [1, 3, 5, 6, 6], [], [2, 2, 2, 2, 2], [4, 5, 6, 1, 2], [3, 4, 1, 2, 2])
def longest_dice_run(dice):
    """Tell how many values follow one another at most, in whatever order the dice lie."""
    ordered = sorted(set(dice))
    longest = 0
    current = 0
    for index, value in enumerate(ordered):
        if index > 0 and value == ordered[index - 1] + 1:
            current += 1
        else:
            current = 1
        longest = max(longest, current)
    return longest


@cases([1, 1, 1], [5, 5, 5], [1, 5, 2], [2, 2, 2, 2], [3, 4, 6], [1, 1, 1, 1], [6, 6, 6, 5], [], [1, 1, 5, 5], [4, 4, 4, 1, 5], [2, 3, 3, 3])
def threes_dice_score(dice):
    """Score dice: three alike count most, single ones and fives a little."""
    score = 0
    for face in range(1, 7):
        count = dice.count(face)
        if count >= 3:
            score += 1000 if face == 1 else face * 100
            count -= 3
        if face == 1:
            score += count * 100
        elif face == 5:
            score += count * 50
    return score


@cases(("a1", "h8"), ("a1", "a8"), ("d4", "e6"), ("c3", "c3"), ("h1", "a8"), ("b2", "g2"), ("e4", "f2"), ("a2", "b1"), ("g7", "c3"), ("f1", "e8"), ("d1", "h5"))
def chess_piece_between(start, end):
    """Name the piece that goes from one square to the other, leaving out the queen."""
    across = abs(ord(start[0]) - ord(end[0]))
    down = abs(int(start[1]) - int(end[1]))
    if max(across, down) <= 1:
        return "king" if start != end else None
    piece = "nothing"
    if across == down:
        piece = "bishop"
    elif across == 0 or down == 0:
        piece = "rook"
    elif across + down == 3:
        piece = "knight"
    return piece


@cases(([(1, 2), (2, 3)],), ([(1, 2), (3, 2)],), ([(1, 2), (4, 5)],), ([],), ([(6, 6), (6, 1), (0, 1)],), ([(0, 0)],), ([(3, 4), (4, 4), (5, 6)],), ([(5, 1), (1, 5), (5, 2)],), ([(2, 3), (2, 4)],), ([(1, 1), (1, 1), (2, 1), (2, 6)],))
def domino_chain_length(tiles):
    """Count the dominoes that fit on, one after another; all but the first are turned if need be."""
    count = 0
    end = None
    for left, right in tiles:
        if end is None or left == end:
            end = right
        elif right == end:
            end = left
        else:
            break
        count += 1
    return count


@cases((["A", "B", "C", "D"], 0), (["A", "B", "C", "D"], 1), (["A", "B", "C", "D"], 2), (["A", "B"], 0), (["A", "B", "C"], 0), (["A", "B", "C"], 1), (["A", "B", "C"], 2), (["K", "L", "M", "N", "O"], 0), (["K", "L", "M", "N", "O"], 3), (["P", "Q", "R", "S"], 3))
def round_robin_pairs(players, turn):
    """Pair players for one turn of a tournament; None stands for a pause."""
    ring = list(players)
    if len(ring) % 2 == 1:
        ring.append(None)
    shift = turn % (len(ring) - 1)
    rest = ring[1:]
    order = ring[:1] + rest[shift:] + rest[:shift]
    half = len(order) // 2
    return list(zip(order[:half], reversed(order[half:])))


@cases((["A", "B", "C", "D"],), (["A", "B", "C"],), (["A"],), ([],), (["K", "L"],), (["P", "Q", "R", "S", "T"],), (["U", "V", "W", "X", "Y", "Z"],), (["a", "b", "c", "d", "e", "f", "g"],), (["m", "n", "o", "p", "q", "r", "s", "t"],), (["i", "j", "k", "l", "m", "n", "o", "p", "q"],))
def seeded_first_round(players):
    """Pair the strongest with the weakest; the first few rest if there are too many places."""
    places = 2
    while places < len(players):
        places *= 2
    resting = min(places - len(players), len(players))
    active = players[resting:]
    matches = []
    for index in range(len(active) // 2):
        other = active[-1 - index]
        matches.append(active[index] + "-" + other)
    return players[:resting] + matches


@cases(("crane", "crate"), ("hello", "world"), ("apple", "apple"), ("speed", "erase"), ("abc", "xyz"), ("aab", "baa"), ("stone", "notes"), ("llama", "label"), ("eee", "eve"), ("tiger", "right"), ("ab", "ba"))
def guess_colors(guess, secret):
    """Mark each letter of a guess: G is right, Y is elsewhere, a point is neither."""
    marks = ""
    rest = [letter for letter, other in zip(secret, guess) if letter != other]
    for index, symbol in enumerate(guess):
        if symbol == secret[index]:
            marks += "G"
        elif symbol in rest:
            marks += "Y"
            rest.remove(symbol)
        else:
            marks += "."
    return marks


@cases(("apple", "ape"), ("apple", "xyz"), ("kiwi", "i"), ("ice cream", "cem"), ("", "a"), ("plum", "plum"), ("Pear", "pr"), ("fig", "gxq"), ("no way", "o"), ("banana", "banx"), ("cat", ""))
def hangman_view(word, tried):
    """Show the letters found so far and how many tries were wrong."""
    shown = ""
    for letter in word:
        if letter == " " or letter.lower() in tried:
            shown += letter
        else:
            shown += "_"
    wrong = sum(1 for letter in tried if letter not in word.lower())
    return shown, wrong


@cases(("1234", "1243"), ("1234", "5678"), ("1234", "1234"), ("1122", "2211"), ("1112", "1231"), ("907", "790"), ("55", "56"), ("4321", "1234"), ("1", "2"), ("8080", "0088"), ("3141", "3411"))
def bulls_and_cows(guess, secret):
    """Count the digits in the right place and those in a wrong one."""
    bulls = 0
    for first, second in zip(guess, secret):
        if first == second:
            bulls += 1
    shared = 0
    for digit in set(guess):
        shared += min(guess.count(digit), secret.count(digit))
    cows = shared - bulls
    return bulls, cows


@cases((["H5", "H9", "H2"], "S"), (["H5", "S1", "H9"], "S"), (["D4"], "C"), (["C2", "D9", "H8"], "S"), (["S3", "S7", "H9"], "S"), (["D1", "H2", "H6", "D9"], "H"), (["C5", "C6", "D7", "C8"], "H"), (["H9", "H1"], "D"), (["D3", "C1", "C4", "D8"], "C"),
       (["S2", "H9", "S5", "S4"], "D"))
def trick_taker(cards, trump):
    """Find the index of the card that takes a trick: the highest trump, or else of the first suit."""
    best = 0
    for index, card in enumerate(cards):
        leader = cards[best]
        if card[0] == leader[0]:
            higher = int(card[1:]) > int(leader[1:])
        else:
            higher = card.startswith(trump)
        if higher:
            best = index
    return best


@cases((0, 0), (1, 0), (2, 3), (3, 3), (4, 3), (3, 4), (4, 2), (5, 5), (6, 4), (0, 4), (5, 6), (1, 1))
def tennis_call(server, receiver):
    """Call the score of a game of tennis."""
    names = ["love", "15", "30", "40"]
    lead = server - receiver
    if max(server, receiver) >= 4 and abs(lead) >= 2:
        return "game server" if lead > 0 else "game receiver"
    if min(server, receiver) >= 3:
        if lead == 0:
            return "deuce"
        return "advantage " + ("server" if lead > 0 else "receiver")
    return names[server] + "-" + names[receiver]


@cases(([10, 3, 4], 2), ([5, 5, 7, 0], 2), ([3, 4], 1), ([10, 10, 10], 1), ([0, 0, 9, 0], 2), ([], 3), ([10, 5, 5, 2, 1], 3), ([9, 1, 10, 4, 2], 3), ([10, 10, 1, 2], 3), ([4, 6, 8, 1], 2), ([10], 1))
def bowling_score(rolls, frames):
    """Score the first frames of bowling, with strikes and spares."""
    score = 0
    at = 0
    for _ in range(frames):
        thrown = rolls[at : at + 2]
        strike = thrown[:1] == [10]
        score += sum(thrown)
        if strike or sum(thrown) == 10:
            score += sum(rolls[at + 2 : at + 3])
        at += 1 if strike else 2
    return score
