"""Fair shares: what is left of a budget divided among those who want some of it."""

from __future__ import annotations

from collections.abc import Sequence


def fair_shares(free: int, wants: Sequence[tuple[int, float]]) -> list[int]:
    """Bytes for each (bytes wanted, weight): what it wants, or else its part by weight of what the others leave.

    Max-min fair, as by filling all at the same speed until each has enough: nobody could get more without taking it
    from somebody who has less for his weight. The sum is at most `free`.

    >>> fair_shares(100, [(10, 1.0), (80, 1.0), (80, 1.0)])
    [10, 45, 45]
    """
    given = [0] * len(wants)
    free = max(free, 0)
    if sum(want for want, _ in wants) <= free:
        return [want for want, _ in wants]
    weights = sum(weight for _, weight in wants)
    order = sorted(range(len(wants)), key=lambda i: wants[i][0] / wants[i][1])
    for place, i in enumerate(order):
        want, weight = wants[i]
        level = free / weights
        if want > level * weight:  # so does everybody behind it
            for j in order[place:]:
                given[j] = min(int(level * wants[j][1]), free)
                free -= given[j]
            break
        given[i] = min(want, free)
        free -= given[i]
        weights -= weight
    return given
