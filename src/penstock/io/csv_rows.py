r"""The rows of CSV text (RFC 4180), and the plain scanner that defines what the compiled one must give.

A row is a list of fields; it ends with `\n`, `\r` or `\r\n`, or with the file. A field that begins with a quote ends
with one: between them stand delimiters and line ends as they are, and two quotes for one. Two things are wrong in a row
and yet leave its end certain: a quote in an unquoted field, and text behind the quote that closes one, which is read to
the next delimiter. A quote that nothing closes takes the rest of the file.
"""

from __future__ import annotations

import numpy as np

# What a scan says about a row: the first thing that is wrong with it.
FINE, QUOTE_INSIDE, TEXT_BEHIND, UNCLOSED = 0, 1, 2, 3

NO_QUOTE = -1  # quotes are characters like any other
_LF, _CR = 10, 13


def plain_rows(
    buffer: np.ndarray,
    at: int,
    final: bool,
    delimiter: int,
    quote: int,
    starts: np.ndarray,
    lengths: np.ndarray,
    offsets: np.ndarray,
    counts: np.ndarray,
    statuses: np.ndarray,
) -> int:
    """Find rows from `at` on, as many as the arrays hold; returns how many.

    `final` says that the content ends with the buffer; else a row that reaches its end is left out. Of row i the first
    fields, as many as `starts` has rows, stand in `starts[:, i]` and `lengths[:, i]` without their quotes; a field with
    doubled quotes inside has the complement of its length. `offsets[i]` is where the row begins and `offsets[i + 1]`
    the next one; `counts[i]` is the number of its fields.
    """
    content = np.asarray(buffer).data
    for row in range(len(counts)):
        offsets[row] = at
        if at >= len(content):
            return row
        counts[row] = statuses[row] = 0
        while True:
            start, length, status, at = _field(content, at, delimiter, quote)
            field = counts[row]
            if field < len(starts):
                starts[field, row], lengths[field, row] = start, length
            counts[row] += 1
            statuses[row] = statuses[row] or status
            if at == len(content) or content[at] != delimiter:
                break
            at += 1
        if not final and (at == len(content) or (content[at] == _CR and at + 1 == len(content))):
            return row
        at += 2 if content[at : at + 2].tobytes() == b"\r\n" else 1
        at = min(at, len(content))
    offsets[len(counts)] = at
    return len(counts)


def _field(content: memoryview, at: int, delimiter: int, quote: int) -> tuple[int, int, int, int]:
    """The field that begins at `at`: (start, length, status, where the delimiter or line end behind it is)."""
    start, stop, status, doubled = at, -1, FINE, False
    if at < len(content) and content[at] == quote:
        start = at = at + 1
        while True:
            while at < len(content) and content[at] != quote:
                at += 1
            if at == len(content):
                return start, at - start, UNCLOSED, at
            if content[at : at + 2].tobytes() != bytes([quote, quote]):
                break
            doubled = True
            at += 2
        stop = at
        at += 1
    while at < len(content) and content[at] not in (delimiter, _LF, _CR):
        if stop >= 0:
            status = TEXT_BEHIND
        elif content[at] == quote:
            status = QUOTE_INSIDE
        at += 1
    length = (at if stop < 0 else stop) - start
    return start, ~length if doubled else length, status, at


def field_bytes(content: memoryview, start: int, length: int) -> bytes:
    """The value of a field as `plain_rows` describes it: two quotes stand for one."""
    if length >= 0:
        return content[start : start + length].tobytes()
    return content[start : start + ~length].tobytes().replace(b'""', b'"')
