"""bytes_at, address_of: memory by its address, so that one call reads from buffers of which any number may be.

An array made of an address is indexed as any other; nothing else here knows of addresses.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.extending import intrinsic
from numba.np import arrayobj

# numba carries types for some of its names only.
make_array: Any = arrayobj.make_array
populate_array: Any = arrayobj.populate_array
_BYTES: Any = types.Array(types.uint8, 1, "C", readonly=True)


def _bytes_at(typing: Any, address: Any, size: Any) -> Any:
    """The `size` bytes from `address` on as an array; the caller holds what they are in."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(_BYTES)(context, builder)
        data = builder.inttoptr(args[0], array.data.type)
        one = context.get_constant(types.intp, 1)
        populate_array(array, data, [args[1]], [one], one, None)
        return array._getvalue()

    return _BYTES(types.int64, types.int64), generate


def _address_of(typing: Any, buffer: Any) -> Any:
    """The address of an array's first byte."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(array.data, context.get_value_type(types.int64))

    return types.int64(buffer), generate


bytes_at: Any = intrinsic(_bytes_at)
address_of: Any = intrinsic(_address_of)
