"""Rows copied past the cache: what is written is not read into it first, and drives nothing else out of it.

An ordinary copy moves three bytes for each: one is read, one written, and one read to be overwritten.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic
from numba.np import arrayobj

from penstock.native.kernel import kernel

LINE = 64  # bytes
_WORDS = ir.VectorType(ir.IntType(64), LINE // 8)
_LINES = 4  # at a time


def _stream_code(typing: Any, src: Any, start: Any, dst: Any, to: Any) -> Any:
    """Copy `_LINES` lines from one place in a flat array of bytes to an aligned one in another."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def lines(array: int, first: int) -> list[Any]:
            make: Any = arrayobj.make_array
            data = make(signature.args[array])(context, builder, args[array]).data
            places = [builder.add(args[first], ir.Constant(ir.IntType(64), i * LINE)) for i in range(_LINES)]
            return [builder.bitcast(builder.gep(data, [place]), _WORDS.as_pointer()) for place in places]

        past = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        values = []
        for place in lines(0, 1):
            values.append(builder.load(place))
            values[-1].align = 1
        for value, place in zip(values, lines(2, 3), strict=True):
            stored = builder.store(value, place)
            stored.align = LINE
            stored.set_metadata("nontemporal", past)
        return context.get_dummy_value()

    return types.none(src, types.int64, dst, types.int64), generate


def _settle_code(typing: Any) -> Any:
    """What was written past the cache is there for other threads, before anything that is written later."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), generate


_stream: Any = intrinsic(_stream_code)
_settle: Any = intrinsic(_settle_code)


@kernel("whole: u8[:], rows: i64[:], size: i64, out: w u8[:], lead: i64 -> i64")
def gather(whole, rows, size, out, lead):
    """Copy rows of `size` bytes of `whole` to `out`; `lead` bytes from its beginning a line begins.

    Returns 0, or -1 if sizes do not fit.
    """
    if size < 1 or out.size % size or out.size // size != rows.size or not 0 <= lead < LINE:
        return -1
    for i in range(rows.size):
        if rows[i] < 0 or rows[i] >= whole.size // size:
            return -1
    step = LINE * _LINES
    for i in range(rows.size):
        start, to = rows[i] * size, i * size
        head = min((lead - to) % LINE, size)
        body = head + (size - head) // step * step
        for at in range(head):
            out[to + at] = whole[start + at]
        for at in range(head, body, step):
            _stream(whole, start + at, out, to + at)
        for at in range(body, size):
            out[to + at] = whole[start + at]
    _settle()
    return 0
