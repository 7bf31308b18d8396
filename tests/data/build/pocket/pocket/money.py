"""Money in whole cents."""


def split_evenly(total, people):
    """Shares that differ by one cent at most and sum to `total`; the first ones get the extra cents."""
    if people < 1:
        raise ValueError("nobody to pay")
    share, rest = divmod(total, people)
    return [share + 1] * rest + [share] * (people - rest)


class Purse:
    """Coins by value."""

    def __init__(self, coins=()):
        self.coins = sorted(coins, reverse=True)

    def total(self):
        """Sum of the coins."""
        return sum(self.coins)

    def pay(self, amount):
        """Take out coins for `amount`, the largest first; None, and nothing taken, if they don't fit."""
        chosen, left = [], amount
        for coin in self.coins:
            if coin <= left:
                chosen.append(coin)
                left -= coin
        if left:
            return None
        for coin in chosen:
            self.coins.remove(coin)
        return chosen
