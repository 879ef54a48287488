"""Parsing a block of records at once, straight from the buffer they were read into."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from penstock.block.column import BytesColumn, used_numbers
from penstock.compiled import Compiled
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate
from penstock.io.columns import ParsedColumn, outside, plain_columns
from penstock.io.expected import Expected, expect
from penstock.io.features import Feature, FixedLenFeature
from penstock.io.plain import parse_plain

if TYPE_CHECKING:
    from penstock.io.tables import Output, Tables


_KERNEL = Compiled("penstock.io.kernels.example.parse")


def parse_columns(
    buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, features: Mapping[str, Feature] | Expected
) -> dict[str, ParsedColumn]:
    """The features of the records `buffer[starts[i] : starts[i] + lengths[i]]`, one column for each.

    `buffer` is uint8, `starts` and `lengths` are int64 (rows,). Numbers are copied out of the buffer, byte strings stay
    in it. One call of a compiled function does the work and does not hold the GIL; the result is that of
    `parse_single_example` on every record.

    >>> from penstock.io.example import encode_example
    >>> from penstock.io.features import FixedLenFeature
    >>> record = np.frombuffer(encode_example({"label": 3}), np.uint8)
    >>> spec = {"label": FixedLenFeature((), np.int64)}
    >>> parse_columns(record, np.array([0, 0]), np.array([len(record)] * 2), spec)["label"].array
    array([3, 3])

    Raises what `parse_single_example` raises for the first record that is not as described, with its index as the
    error's `context.element`.
    """
    expected = features if isinstance(features, Expected) else expect(features)
    starts, lengths = np.asarray(starts), np.asarray(lengths)
    if starts.ndim != 1 or starts.shape != lengths.shape:
        message = f"starts and lengths must be vectors of one length, got shapes {starts.shape} and {lengths.shape}."
        raise InvalidArgumentError(message)
    return parse_strings((buffer,), None, starts, lengths, expected)


def parse_strings(
    buffers: tuple[np.ndarray, ...],
    which: np.ndarray | None,
    starts: np.ndarray,
    lengths: np.ndarray,
    expected: Expected,
) -> dict[str, ParsedColumn]:
    """`parse_columns` of records in several buffers: record i is in number `which[i]`, all in the first for None.

    Nothing is copied, unless byte strings of fixed descriptions, which stay where the records are, would keep alive
    many buffers: more than eight, and than one for four records.
    """
    starts, lengths = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)
    if which is not None and _scattered(which, expected):
        buffer, starts, lengths = BytesColumn(buffers, starts, lengths, which).packed()
        buffers, which = (buffer,), None
    buffers = tuple(map(_readable, buffers))
    kernel = _KERNEL.ready()
    if kernel is None:
        return plain_columns(buffers, which, starts, lengths, expected)
    from penstock.io.columns import columns_of
    from penstock.io.tables import Output, tables_of

    tables = tables_of(expected)
    output = Output(tables, len(starts))
    row = _run(kernel, buffers, which, starts, lengths, tables, output)
    if row < len(starts):
        number = 0 if which is None else int(which[row])
        raise _rejected(buffers[number], int(starts[row]), int(lengths[row]), row, expected)
    _learn(tables, output)
    return columns_of(expected, tables, output, buffers, which)


def _scattered(which: np.ndarray, expected: Expected) -> bool:
    """Whether byte strings are to stay in the records, and these are spread over many buffers."""
    if not any(isinstance(one.feature, FixedLenFeature) and one.feature.dtype is bytes for one in expected.outputs):
        return False
    return len(used_numbers(which)) > max(8, len(which) // 4)


def _readable(buffer: np.ndarray) -> np.ndarray:
    """The buffer as a plain array that nobody writes to through it; the same object where it is one already."""
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
        message = f"buffer must be a contiguous uint8 vector, got {buffer.dtype} of shape {buffer.shape}."
        raise InvalidArgumentError(message)
    if type(buffer) is np.ndarray and not buffer.flags.writeable:
        return buffer
    view = buffer.view(np.ndarray)
    view.setflags(write=False)
    return view


def _run(
    kernel: ModuleType,
    buffers: tuple[np.ndarray, ...],
    which: np.ndarray | None,
    starts: np.ndarray,
    lengths: np.ndarray,
    tables: Tables,
    output: Output,
) -> int:
    """Parse the records into `output`; returns how many there are before the first that is refused."""
    addresses = np.array([buffer.__array_interface__["data"][0] for buffer in buffers], np.int64)
    sizes = np.array([buffer.size for buffer in buffers], np.int64)
    numbers = np.zeros(len(starts), np.int32) if which is None else np.ascontiguousarray(which, np.int32)
    memory, notes = kernel.NO_MEMORY.copy(), tables.no_notes.copy()
    done = 0
    while True:
        done, status, entry, needed = kernel.parse(
            addresses,
            sizes,
            numbers,
            starts,
            lengths,
            done,
            output.table,
            tables.keys,
            tables.places,
            tables.int_defaults,
            tables.float_defaults,
            output.splits,
            output.ints,
            output.floats.view(np.uint32),
            output.starts,
            output.lengths,
            memory,
            notes,
        )
        if status != kernel.NO_ROOM:
            return int(done)
        output.grow(entry, needed)


def _learn(tables: Tables, output: Output) -> None:
    """Remember how many values the lists had."""
    if tables.lists and output.rows:
        for k, known in enumerate(tables.density):
            if known:
                tables.density[k] = max(known, output.count(k) / output.rows)


def _rejected(buffer: np.ndarray, start: int, length: int, row: int, expected: Expected) -> PenstockError:
    """The error for a record the kernel refused: that of the plain parser, which refuses the same ones."""
    if start < 0 or length < 0 or start + length > len(buffer):
        return outside(row, start, length, buffer)
    try:
        parse_plain(buffer[start : start + length].tobytes(), expected)
    except PenstockError as error:
        annotate(error, Context(element=row))
        return error
    message = f"the compiled parser refuses record {row}, the plain one does not"
    raise AssertionError(message)
