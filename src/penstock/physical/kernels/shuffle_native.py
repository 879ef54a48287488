"""The shuffle's loop compiled; equal to `reference` by property test."""

from __future__ import annotations

from penstock.native.kernel import kernel


@kernel("picks: i64[:], holder: w i64[:], source: w i64[:], touched: w i64[:], rows: w i64[:] -> i64")
def reservoir(picks, holder, source, touched, rows):
    """Write `source`, and the slots that are `touched` with their `rows`; returns how many are. See `reference`.

    `holder` has a place for each slot, `touched` and `rows` for as many as there can be.
    """
    count, capacity = picks.size, holder.size
    if source.size != count or min(touched.size, rows.size) < min(count, capacity):
        return -1
    for slot in range(capacity):
        holder[slot] = -1
    distinct = 0
    for i in range(count):
        slot = picks[i]
        if slot < 0 or slot >= capacity:
            return -1
        held = holder[slot]
        if held < 0:
            source[i] = slot
            touched[distinct] = slot
            distinct += 1
        else:
            source[i] = capacity + held
        holder[slot] = i
    for k in range(distinct):
        rows[k] = holder[touched[k]]
    return distinct
