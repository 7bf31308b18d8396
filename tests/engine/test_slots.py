"""Which slot a prompt gets, and what of its cache is kept."""

from __future__ import annotations

import random

from inloop.engine.slots import MIN_SHARED, Seat, Seats, Slot

PROMPT = list(range(100, 140))


def place(seats: Seats, prompt: list[int], conversation: str | None = None, epoch: int = 0) -> Seat:
    seat = seats.find(prompt, conversation, epoch)
    assert seat is not None
    seats.take(seat, prompt, conversation, epoch)
    return seat


def finish(seats: Seats, slot: Slot, tokens: list[int]) -> None:
    seats.release(slot, tokens, len(tokens) - 1)


def test_a_conversation_returns_to_its_slot() -> None:
    seats = Seats(3, share=True)
    seat = place(seats, PROMPT, "a")
    finish(seats, seat.slot, [*PROMPT, 7, 8])
    again = place(seats, [*PROMPT, 7, 8, 9], "a")
    assert again.slot is seat.slot and again.kept == len(PROMPT) + 1


def test_the_last_token_is_always_computed() -> None:
    seats = Seats(1, share=True)
    seat = place(seats, PROMPT, "a")
    finish(seats, seat.slot, [*PROMPT, 7])
    assert place(seats, PROMPT, "a").kept == len(PROMPT) - 1


def test_a_busy_conversation_waits() -> None:
    seats = Seats(2, share=True)
    place(seats, PROMPT, "a")
    assert seats.find(PROMPT, "a", 0) is None
    place(seats, [1, 2], "b")
    assert seats.find([3], "c", 0) is None


def test_a_shared_prompt_waits_for_who_computes_it_then_copies() -> None:
    seats = Seats(2, share=True)
    first = place(seats, PROMPT, "a")
    assert seats.find(PROMPT, "b", 0) is None
    first.slot.computed = len(PROMPT)
    second = place(seats, PROMPT, "b")
    assert second.source is first.slot and second.shared == len(PROMPT) - 1 and second.slot.computed == second.shared


def test_a_short_prefix_is_not_worth_a_copy() -> None:
    seats = Seats(2, share=True)
    place(seats, PROMPT, "a")
    other = [*PROMPT[: MIN_SHARED - 1], 1, 2, 3]
    assert place(seats, other, "b").source is None


def test_old_weights_are_not_reused() -> None:
    seats = Seats(2, share=True)
    seat = place(seats, PROMPT, "a", 0)
    finish(seats, seat.slot, [*PROMPT, 7])
    again = place(seats, [*PROMPT, 7, 8], "a", 1)
    assert again.slot is seat.slot and again.kept == 0 and again.source is None


def test_forgotten_and_empty_slots_go_first() -> None:
    seats = Seats(3, share=True)
    for index, name in enumerate("ab"):
        seat = place(seats, [index * 1000 + i for i in range(30)], name)
        finish(seats, seat.slot, [index * 1000 + i for i in range(31)])
    third = place(seats, [5000], "c")
    assert third.slot.index == 2
    finish(seats, third.slot, [5000, 1, 2])
    seats.forget("b")
    assert place(seats, [6000], "d").slot.index == 1
    assert place(seats, [7000], "e").slot.index == 0


def test_nameless_prompts_continue_what_they_extend() -> None:
    seats = Seats(2, share=True)
    seat = place(seats, PROMPT)
    finish(seats, seat.slot, [*PROMPT, 7])
    again = place(seats, [*PROMPT, 7, 9])
    assert again.slot is seat.slot and again.kept == len(PROMPT)


def test_random_traffic_never_claims_what_is_not_there() -> None:
    """Against a model of what each slot's cache really holds."""
    dice, seats = random.Random(3), Seats(4, share=True)
    held: dict[int, list[int]] = {i: [] for i in range(4)}
    running: list[tuple[Slot, list[int]]] = []
    for _ in range(3000):
        if running and dice.random() < 0.5:
            slot, tokens = running.pop(dice.randrange(len(running)))
            tokens = [*tokens, *(dice.randrange(3) for _ in range(dice.randrange(1, 5)))]
            held[slot.index] = tokens[:-1]
            seats.release(slot, tokens, len(tokens) - 1)
            continue
        prompt = [dice.randrange(3) for _ in range(dice.randrange(1, 60))]
        if dice.random() < 0.6:
            base = dice.choice(list(held.values()))
            prompt = [*base, *prompt[:4]]
        name = dice.choice([None, "a", "b", "c"])
        seat = seats.find(prompt, name, 0)
        if seat is None:
            continue
        assert held[seat.slot.index][: seat.kept] == prompt[: seat.kept] and not seat.slot.busy
        if seat.source is not None:
            assert held[seat.source.index][: seat.shared] == prompt[: seat.shared]
        assert max(seat.kept, seat.shared) < len(prompt)
        seats.take(seat, prompt, name, 0)
        seat.slot.computed, held[seat.slot.index] = len(prompt), list(prompt)
        running.append((seat.slot, prompt))
