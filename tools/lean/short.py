"""Shorter code from numba for LLVM with the same meaning: items, ranges, and calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

# members of numba's arrays, in its order
MEMBERS = "meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides"


def _check_members() -> None:
    """Raise AttributeError if numba's arrays have other members."""
    from numba.core import datamodel, types

    managed: Any = datamodel
    array = managed.default_manager[types.Array(types.uint8, 1, "C")]
    if tuple(array._fields) != MEMBERS:
        raise AttributeError(array._fields)


def short_writing() -> None:
    """Write the most common operations of kernels in a third of the LLVM instructions, with the same meaning.

    numba stores an array in memory to take an item of it, counts the steps of each range as if it could go backwards,
    and overwrites variables when they end. LLVM removes all of that again.
    """
    from llvmlite import ir as llvm
    from numba.core import cgutils, ir
    from numba.core import types as numba_types
    from numba.core.base import BaseContext
    from numba.core.lowering import Lower
    from numba.core.postproc import PostProcessor
    from numba.core.targetconfig import ConfigStack
    from numba.cpython.rangeobj import range_impl_map
    from numba.np.arrayobj import fix_integer_index, load_item, store_item

    lower: Any = Lower
    types: Any = numba_types
    alloca_once: Any = cgutils.alloca_once
    context_type: Any = BaseContext
    processor: Any = PostProcessor
    mark = processor._insert_var_dels
    get, put, expression, end = lower.lower_getitem, lower.lower_setitem, lower.lower_expr, lower.delvar
    meminfo, parent, items, itemsize, data, shape, strides = range(len(MEMBERS))
    _check_members()
    ranges = {iterator: state for state, iterator in range_impl_map.values()}
    assert next(iter(ranges)).yield_type in range_impl_map

    def item(self: Any, kind: Any, array: Any, index: Any, index_type: Any) -> Any:
        """Return a pointer to an item, or to the first item of a subarray with the last axes of the array."""
        b, place = self.builder, llvm.Constant(llvm.IntType(64), 0)
        tuple_of = isinstance(index_type, types.BaseTuple)
        for axis, of in enumerate(index_type if tuple_of else [index_type]):
            at = b.extract_value(index, axis) if tuple_of else index
            if of.signed and isinstance(at, llvm.Constant) and at.constant >= 0:
                at = self.context.cast(b, at, of, types.intp)
            else:
                at = fix_integer_index(self.context, b, of, at, b.extract_value(array, [shape, axis]))  # type: ignore[no-untyped-call]
            for inner in range(axis + 1, kind.ndim):
                at = b.mul(at, b.extract_value(array, [shape, inner]))
            place = at if axis == 0 else b.add(place, at)
        return b.gep(b.extract_value(array, data), [place])

    def is_simple(self: Any, kind: Any, index: Any) -> int:
        """Return the number of axes that integers index, or 0 if numba has to write the code."""
        if type(kind) is not types.Array or kind.layout != "C" or self.context.enable_boundscheck:
            return 0
        each = list(index) if isinstance(index, types.BaseTuple) else [index]
        return len(each) if len(each) <= kind.ndim and all(isinstance(i, types.Integer) for i in each) else 0

    def lower_getitem(self: Any, result: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        kind, index_type = self.typeof(value.name), self.typeof(index.name)
        taken = is_simple(self, kind, index_type)
        if not taken or signature.return_type != result:
            return get(self, result, expr, value, index, signature)
        b, array = self.builder, self.loadvar(value.name)
        place = item(self, kind, array, self.loadvar(index.name), index_type)
        if taken == kind.ndim:
            return load_item(self.context, b, kind, place)  # type: ignore[no-untyped-call]
        part = llvm.Constant(self.context.get_value_type(result), llvm.Undefined)
        number = llvm.Constant(llvm.IntType(64), 1)
        for to, axis in enumerate(range(taken, kind.ndim)):
            size = b.extract_value(array, [shape, axis])
            number = size if to == 0 else b.mul(number, size, flags=["nsw"])
            part = b.insert_value(part, size, [shape, to])
            part = b.insert_value(part, b.extract_value(array, [strides, axis]), [strides, to])
        for member in (meminfo, parent, itemsize):
            part = b.insert_value(part, b.extract_value(array, member), member)
        part = b.insert_value(b.insert_value(part, number, items), place, data)
        self.incref(result, part)
        return part

    def lower_setitem(self: Any, target: Any, index: Any, value: Any, signature: Any) -> Any:
        kind, index_type, value_type = (self.typeof(each.name) for each in (target, index, value))
        single = isinstance(value_type, types.Number | types.Boolean)
        taken = is_simple(self, kind, index_type)
        if not (single and taken and taken == kind.ndim):
            return put(self, target, index, value, signature)
        array = self.loadvar(target.name)
        place = item(self, kind, array, self.loadvar(index.name), index_type)
        wanted = signature.args[2]
        converted = self.context.cast(self.builder, self.loadvar(value.name), value_type, wanted)
        converted = self.context.cast(self.builder, converted, wanted, kind.dtype)
        return store_item(self.context, self.builder, kind, converted, place)  # type: ignore[no-untyped-call]

    def constant_step(self: Any, name: str) -> int:
        """Return the step of the range in a variable if it is known and positive, else 0."""
        try:
            made = self.func_ir.get_definition(name)
            if not (isinstance(made, ir.Expr) and made.op == "call" and made.vararg is None and not made.kws):
                return 0
            function = self.typeof(made.func.name)
            if not isinstance(function, types.Function) or function.typing_key is not range:
                return 0
            if len(made.args) < 3:
                return 1
            step = self.func_ir.get_definition(made.args[2])
        except KeyError:
            return 0
        known = isinstance(step, ir.Const | ir.Global | ir.FreeVar) and type(step.value) is int and step.value > 0
        return step.value if known else 0

    def lower_expr(self: Any, result: Any, expr: Any) -> Any:
        if expr.op == "getiter" and result in ranges:
            step = constant_step(self, expr.value.name)
            if step:
                return begin(self, result, self.loadvar(expr.value.name), step)
        elif expr.op == "iternext" and self.typeof(expr.value.name) in ranges:
            return following(self, result, self.loadvar(expr.value.name))
        return expression(self, result, expr)

    def begin(self: Any, result: Any, of: Any, step: int) -> Any:
        b = self.builder
        start, stop = b.extract_value(of, 0), b.extract_value(of, 1)
        place, left = (alloca_once(b, start.type) for _ in range(2))
        zero, by = llvm.Constant(start.type, 0), llvm.Constant(start.type, step)
        b.store(start, place)
        many = b.sub(stop, start)
        forwards = b.icmp_signed(">", many, zero)
        if step > 1:
            uneven = b.icmp_signed(">", b.srem(many, by), zero)
            many = b.add(b.sdiv(many, by), b.zext(uneven, start.type))
        b.store(b.select(forwards, many, zero), left)
        iterator = llvm.Constant(self.context.get_value_type(result), llvm.Undefined)
        for k, value in enumerate((place, stop, by, left)):
            iterator = b.insert_value(iterator, value, k)
        return iterator

    def following(self: Any, result: Any, iterator: Any) -> Any:
        b = self.builder
        counter = b.extract_value(iterator, 3)
        left = b.load(counter)
        more, before = b.icmp_signed(">", left, left.type(0)), b.block
        with b.if_then(more):
            place = b.extract_value(iterator, 0)
            value = b.load(place)
            b.store(b.sub(left, left.type(1), flags=["nsw"]), counter)
            b.store(b.add(value, b.extract_value(iterator, 2)), place)
            within = b.block
        found = b.phi(value.type)
        found.add_incoming(llvm.Constant(value.type, llvm.Undefined), before)
        found.add_incoming(value, within)
        pair = llvm.Constant(self.context.get_value_type(result), llvm.Undefined)
        return b.insert_value(b.insert_value(pair, found, 0), more, 1)

    def mark_ends(self: Any, extend_lifetimes: Any = False) -> None:
        flags: Any = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
        if flags is None or flags.nrt:  # without references, nothing happens at the end of a variable
            mark(self, extend_lifetimes)

    def delvar(self: Any, name: str) -> None:
        kind = self.typeof(name)
        if self.context.enable_nrt and self.context.data_model_manager[kind].contains_nrt_meminfo():
            end(self, name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)

    lower.lower_getitem, lower.lower_setitem, lower.lower_expr, lower.delvar = (
        lower_getitem,
        lower_setitem,
        lower_expr,
        delvar,
    )
    processor._insert_var_dels = mark_ends
    context_type.pair_first = lambda self, builder, pair, kind: builder.extract_value(pair, 0)
    context_type.pair_second = lambda self, builder, pair, kind: builder.extract_value(pair, 1)


def short_arrays() -> None:
    """Create new arrays inline. numba compiles three functions for each kind of `zeros`."""
    import numpy as np
    from numba.core import cgutils
    from numba.core import types as numba_types
    from numba.core.imputils import lower_builtin
    from numba.core.typing import npydecl, templates
    from numba.np import arrayobj

    types: Any = numba_types
    whole: Any = arrayobj
    typing: Any = npydecl
    signature_of: Any = templates.signature
    parse, make = whole._parse_empty_args, whole._empty_nd_impl
    function: Any = types.BaseFunction
    find = function.get_call_type
    makers = {np.empty: "penstock.empty", np.zeros: "penstock.zeros"}

    def made(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return make(context, builder, *parse(context, builder, signature, args))

    @lower_builtin(makers[np.empty], types.VarArg(types.Any))  # type: ignore[no-untyped-call]
    def empty(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return made(context, builder, signature, args)._getvalue()

    @lower_builtin(makers[np.zeros], types.VarArg(types.Any))  # type: ignore[no-untyped-call]
    def zeros(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = made(context, builder, signature, args)
        cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)  # type: ignore[no-untyped-call]
        return array._getvalue()

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2 or not isinstance(self, types.Function) or self.typing_key not in makers:
            return find(self, context, args, kws)
        dtype, axes = typing.parse_dtype(args[1]), typing.parse_shape(args[0])
        if dtype is None or axes is None:
            return find(self, context, args, kws)
        self._impl_keys[args] = makers[self.typing_key]
        return signature_of(types.Array(dtype, axes, "C"), *args)

    function.get_call_type = get_call_type


def short_calls() -> None:
    """Pass only addresses and shapes of arrays to parts without references: two numbers instead of seven.

    The other numbers follow from the type, or are for counting references. If a part cannot fail, its caller does not
    check it.
    """
    from llvmlite import ir as llvm
    from numba.core import base, callconv, cgutils
    from numba.core import types as numba_types
    from numba.core.cpu import CPUContext
    from numba.core.datamodel.packer import ArgPacker
    from numba.core.lowering import BaseLower

    _check_members()
    data, shape, strides, items, itemsize = map(MEMBERS.index, ("data", "shape", "strides", "nitems", "itemsize"))
    conv: Any = callconv.CPUCallConv
    types: Any = numba_types
    alloca_once: Any = cgutils.alloca_once
    context_type: Any = CPUContext
    base_lower: Any = BaseLower
    whole: Any = base
    declare, call, fail = context_type.declare_function, conv.call_function, conv._return_errcode_raw
    packer_of, setup, arguments = conv._get_arg_packer, base_lower.setup_function, base_lower.extract_function_arguments
    usual, after, unresolved = whole.user_function, context_type.post_lowering, context_type.call_unresolved
    short: set[str] = set()  # functions with short arguments
    failing: set[str] = set()  # names of functions that may return an error code
    fine = {str(callconv.RETCODE_OK), str(callconv.RETCODE_NONE)}
    name_of = ""  # name of the function whose arguments are packed
    intp = llvm.IntType(64)

    class Short(ArgPacker):
        """The short arguments of a function, one after the other."""

        def __init__(self, context: Any, kinds: Any) -> None:
            super().__init__(context.data_model_manager, kinds)  # type: ignore[no-untyped-call]
            self._context, self._kinds = context, kinds

        @property
        def argument_types(self) -> Any:
            return tuple(found for kind in self._kinds for found in self._types(kind))

        def _types(self, kind: Any) -> list[Any]:
            if isinstance(kind, types.BaseTuple):
                return [found for each in kind for found in self._types(each)]
            if _is_contiguous(kind):
                return [self._context.get_value_type(kind).elements[data], *[intp] * kind.ndim]
            return list(ArgPacker(self._context.data_model_manager, [kind]).argument_types)  # type: ignore[no-untyped-call]

        def as_arguments(self, builder: Any, values: Any) -> Any:
            return tuple(
                found
                for kind, value in zip(self._kinds, values, strict=True)
                for found in self._out(builder, kind, value)
            )

        def _out(self, b: Any, kind: Any, value: Any) -> list[Any]:
            if isinstance(kind, types.BaseTuple):
                return [found for k, each in enumerate(kind) for found in self._out(b, each, b.extract_value(value, k))]
            if _is_contiguous(kind):
                return [b.extract_value(value, data), *(b.extract_value(value, [shape, k]) for k in range(kind.ndim))]
            return list(ArgPacker(self._context.data_model_manager, [kind]).as_arguments(b, [value]))  # type: ignore[no-untyped-call]

        def from_arguments(self, builder: Any, args: Any) -> Any:
            left = list(args)[::-1]
            return [self._in(builder, kind, left) for kind in self._kinds]

        def _in(self, b: Any, kind: Any, left: list[Any]) -> Any:
            if isinstance(kind, types.BaseTuple):
                made = llvm.Constant(self._context.get_value_type(kind), llvm.Undefined)
                for k, each in enumerate(kind):
                    made = b.insert_value(made, self._in(b, each, left), k)
                return made
            if not _is_contiguous(kind):
                packer = ArgPacker(self._context.data_model_manager, [kind])  # type: ignore[no-untyped-call]
                return packer.from_arguments(b, [left.pop() for _ in packer.argument_types])[0]  # type: ignore[no-untyped-call]
            size = self._context.get_abi_sizeof(self._context.get_data_type(kind.dtype))
            stride, number = llvm.Constant(intp, size), None
            made = llvm.Constant(self._context.get_value_type(kind), None)
            made = b.insert_value(b.insert_value(made, stride, itemsize), left.pop(), data)
            sizes = [left.pop() for _ in range(kind.ndim)]
            for k in reversed(range(kind.ndim)):
                made = b.insert_value(b.insert_value(made, sizes[k], [shape, k]), stride, [strides, k])
                number = sizes[k] if number is None else b.mul(number, sizes[k], flags=["nsw"])
                if k:
                    stride = b.mul(stride, sizes[k])
            return b.insert_value(made, number, items)

        def assign_names(self, args: Any, names: Any) -> None:
            pass

    def _is_contiguous(kind: Any) -> bool:
        return type(kind) is types.Array and kind.layout == "C" and kind.ndim > 0

    @contextlib.contextmanager
    def called(name: str) -> Iterator[None]:
        nonlocal name_of
        before, name_of = name_of, name
        try:
            yield
        finally:
            name_of = before

    def get_packer(self: Any, kinds: Any) -> Any:
        return Short(self.context, kinds) if name_of in short else packer_of(self, kinds)

    def declare_function(self: Any, module: Any, of: Any) -> Any:
        with called(of.mangled_name):
            return declare(self, module, of)

    def call_function(self: Any, builder: Any, callee: Any, *args: Any, **options: Any) -> Any:
        with called(callee.name):
            return call(self, builder, callee, *args, **options)

    def call_unresolved(self: Any, builder: Any, name: str, signature: Any, args: Any) -> Any:
        with called(name):  # for a function that calls itself
            return unresolved(self, builder, name, signature, args)

    def setup_function(self: Any, of: Any) -> None:
        if not self.context.enable_nrt and getattr(self.library, "is_part", False):
            short.add(of.mangled_name)
        setup(self, of)

    def extract_function_arguments(self: Any) -> Any:
        with called(self.fndesc.mangled_name):
            return arguments(self)

    def return_code(self: Any, builder: Any, code: Any) -> None:
        if str(code) not in fine:
            failing.add(builder.function.name)
        fail(self, builder, code)

    def user_function(of: Any, libraries: Any) -> Any:
        """Write numba's own call, or a shorter one for a function that cannot fail."""
        name = of.mangled_name
        asking = usual(of, libraries)
        if not getattr(libraries[0], "is_part", False) or isinstance(of.restype, types.Optional):
            return asking

        def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if name in failing:
                return asking(context, builder, signature, args)
            function = context.declare_function(builder.module, of)
            with called(name):
                given = context.call_conv._get_arg_packer(of.argtypes).as_arguments(builder, args)
            place = alloca_once(builder, function.function_type.args[0].pointee)
            error = alloca_once(builder, function.function_type.args[1].pointee)
            builder.call(function, [place, error, *given])
            return context.get_returned_value(builder, of.restype, builder.load(place))

        write.signature, write.libs = asking.signature, asking.libs  # type: ignore[attr-defined]
        return write

    def post_lowering(self: Any, module: Any, library: Any) -> None:
        if self.enable_nrt or self.fastmath or self.is32bit:  # otherwise there are no references to count
            after(self, module, library)

    context_type.declare_function, context_type.post_lowering = declare_function, post_lowering
    context_type.call_unresolved = call_unresolved
    conv._get_arg_packer, conv.call_function, conv._return_errcode_raw = get_packer, call_function, return_code
    base_lower.setup_function, base_lower.extract_function_arguments = setup_function, extract_function_arguments
    whole.user_function = user_function
