"""SlotStates: what was told of a moment stays what it was then, and costs what has changed."""

import random

from penstock.physical.chained import SlotStates

LEAST = 64  # changes that are never too many


def moments(slots, count):
    """What is told at each of so many moments, what is so, and how many lists of all slots and changes were kept."""
    chance, now, told, lists, changes = random.Random(slots), {}, [], set(), []
    states = SlotStates(now.get)
    for moment in range(count):
        slot = chance.randrange(slots)
        now[slot] = None if now.get(slot) is not None and chance.random() < 0.3 else [slot, moment]
        states.moved.add(slot)
        found = states.now()
        told.append((found, {at: state for at, state in now.items() if state is not None}))
        lists.add(id(found._base))
        changes.append(len(found._changes) - len(found._base))
    return told, lists, changes


def test_what_was_told_stays_as_it_was():
    for slots in (1, 3, 40):
        told, _, _ = moments(slots, 400)
        for found, wanted in told:
            assert sorted(found.resolved()) == sorted(found) == sorted(wanted.values())


def test_a_list_of_all_slots_is_made_when_there_are_as_many_changes():
    for slots in (1, 40, 300):
        told, lists, changes = moments(slots, 2000)
        assert max(changes) == LEAST
        assert 2000 / (slots + LEAST + 1) / 2 < len(lists) <= 2000 / LEAST + 1
        assert told


def test_nothing_has_changed_of_slots_that_have_not_moved():
    asked = []
    states = SlotStates(lambda slot: asked.append(slot) or [slot])
    states.moved |= {1, 2}
    assert sorted(states.now().resolved()) == [[1], [2]]
    states.moved.add(2)
    assert sorted(states.now().resolved()) == [[1], [2]]
    assert list(states.now()) == states.now().resolved()
    assert sorted(asked) == [1, 2, 2]
