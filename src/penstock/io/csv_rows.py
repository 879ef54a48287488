r"""The rows of CSV text (RFC 4180): the scanner that defines them, and where those with sound quotes end.

A row is a list of fields; it ends with `\n`, `\r` or `\r\n`, or with the file. A field that begins with a quote ends
with one: between them stand delimiters and line ends as they are, and two quotes for one. Two things are wrong in a row
and yet leave its end certain: a quote in an unquoted field, and text behind the quote that closes one, which is read to
the next delimiter. A quote that nothing closes takes the rest of the file.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import numpy as np

# What a scan says about a row: the first thing that is wrong with it.
FINE, QUOTE_INSIDE, TEXT_BEHIND, UNCLOSED = 0, 1, 2, 3

NO_QUOTE = -1  # quotes are characters like any other
_QUOTE = re.compile(b'"')
_LF, _CR = 10, 13


class Row(NamedTuple):
    """The values of a row's fields, what is wrong with it, where the next one begins, and if a line end says so."""

    fields: list[bytes]
    status: int
    stop: int
    ended: bool


def plain_row(content: memoryview, at: int, delimiter: int, quote: int, *, final: bool) -> Row | None:
    """The row that begins at `at`; None where it may go on behind the content, which is not `final`."""
    row = whole_row(content, at, delimiter, quote)
    return row if final or row.ended else None


def whole_row(content: memoryview, at: int, delimiter: int, quote: int) -> Row:
    """The row that begins at `at` of all content there is."""
    fields: list[bytes] = []
    worst = FINE
    while True:
        field, status, at = _field(content, at, delimiter, quote)
        fields.append(field)
        worst = worst or status
        if at == len(content) or content[at] != delimiter:
            break
        at += 1
    ended = at < len(content) and not (content[at] == _CR and at + 1 == len(content))
    at += 2 if content[at : at + 2].tobytes() == b"\r\n" else 1
    return Row(fields, worst, min(at, len(content)), ended)


def _field(content: memoryview, at: int, delimiter: int, quote: int) -> tuple[bytes, int, int]:
    """The field that begins at `at`: (value, status, where the delimiter or line end behind it is)."""
    size = len(content)
    if at == size or content[at] != quote:
        end = _end(content, at, delimiter)
        value = content[at:end].tobytes()
        return value, QUOTE_INSIDE if quote >= 0 and quote in value else FINE, end
    start = at = at + 1
    doubled = False
    while True:
        found = _QUOTE.search(content, at)
        if found is None:
            return content[start:].tobytes(), UNCLOSED, size
        at = found.end()
        if at == size or content[at] != quote:
            break
        doubled = True
        at += 1
    value = content[start : at - 1].tobytes()
    end = _end(content, at, delimiter)
    return value.replace(b'""', b'"') if doubled else value, TEXT_BEHIND if end > at else FINE, end


def _end(content: memoryview, at: int, delimiter: int) -> int:
    found = _ends(delimiter).search(content, at)
    return len(content) if found is None else found.start()


@cache
def _ends(delimiter: int) -> re.Pattern[bytes]:
    return re.compile(b"[\n\r" + re.escape(bytes([delimiter])) + b"]")


def sound_rows(content: np.ndarray, delimiter: int, quote: int, *, final: bool) -> np.ndarray:
    """Where rows begin from 0 on, and where the last of them ends, up to the first one with a quote where none may be.

    Empty where there is none that ends in the content, and is sound.
    """
    size = len(content)
    line_ends, quotes = content == _LF, np.zeros(0, np.int64)
    quoted = content == quote if quote >= 0 else np.zeros(0, bool)
    if quoted.any():
        found = np.flatnonzero(line_ends | quoted)
        is_quote = quoted[found]
        inside = np.bitwise_xor.accumulate(is_quote.view(np.uint8)).view(bool)
        quotes, ends = found[is_quote], found[~(is_quote | inside)]
    else:
        ends = np.flatnonzero(line_ends)
    returns = np.flatnonzero(content == _CR)
    if len(returns):
        behind = content[np.minimum(returns + 1, size - 1)]
        alone = returns[(behind != _LF) & ((returns + 1 < size) | final)]
        alone = alone[np.searchsorted(quotes, alone) % 2 == 0]
        ends = np.sort(np.concatenate([ends, alone]))
    stop = _first_wrong(content, quotes, delimiter) if len(quotes) else size
    begins = np.concatenate([[0], ends[ends < stop] + 1])
    if final and stop == size and begins[-1] < size and len(quotes) % 2 == 0:
        begins = np.concatenate([begins, [size]])  # the last one needs no line end
    return begins if len(begins) > 1 else begins[:0]


def _first_wrong(content: np.ndarray, quotes: np.ndarray, delimiter: int) -> int:
    """Where the first of the quotes stands that neither opens nor closes a field; the content's size if none does."""
    may_stand = np.zeros(256, bool)
    may_stand[[delimiter, _LF, _CR, content[quotes[0]]]] = True
    places = quotes.copy()
    places[::2] -= 1  # what opens a field has something in front, what closes it something behind
    places[1::2] += 1
    good = may_stand[content.take(places, mode="clip")]
    good[0] |= places[0] < 0
    good[-1] |= places[-1] == len(content)
    return len(content) if good.all() else int(quotes[np.argmin(good)])
