"""tf.data's Dataset: penstock's, whose functions and iterators get tensors.

Every method is that of `penstock.Dataset`. Functions are wrapped (`calling.called`), Python's numbers get TensorFlow's
dtypes, and returned data sets are of this class.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.structure import flatten, map_leaves
from penstock.compat.calling import as_written_by, called, returned
from penstock.compat.dtypes import plain, plain_nest
from penstock.compat.op import seeds
from penstock.compat.teaching import Namespace, unknown
from penstock.compat.values import CONVERSIONS, Tensor, array_of, lowered, raised
from penstock.dataset import create

_METHODS = {
    "experimental_save": "Write ds.save(path).",
    "output_classes": "Write ds.element_spec.",
    "with_tf1_graph": "There is no graph: iterate over the data set.",
}
_IGNORED = ("name", "synchronous", "use_unbounded_threadpool")  # TensorFlow's graph and threads


class Count(int):
    """A number of elements with the method `numpy()` of a tensor."""

    def numpy(self) -> np.int64:
        return np.int64(self)


class TensorIterator:
    """An iteration over a data set, with elements as tensors."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._elements = dataset.iterator()

    def __iter__(self) -> TensorIterator:
        return self

    def __next__(self) -> Any:
        return map_leaves(raised, next(self._elements))

    def get_next(self, name: Any = None) -> Any:
        """Return the next element. Raises OutOfRangeError after the last one."""
        try:
            return next(self)
        except StopIteration:
            from penstock.errors import OutOfRangeError

            raise OutOfRangeError("End of sequence") from None

    def get_next_as_optional(self) -> Any:
        """Return the next element as an optional value with `has_value()` and `get_value()`."""
        found = list(itertools.islice(self, 1))
        has = raised(np.bool_(bool(found)))
        return Namespace("tf.experimental.Optional", has_value=lambda: has, get_value=lambda: found[0])

    @property
    def initializer(self) -> None:
        """None. TensorFlow 1 runs the initializer to begin an iteration, but this iteration has begun."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset if name == "element_spec" else self._elements, name)


def adopted(value: Any) -> Any:
    """Return penstock's data sets, also in a nest, as data sets of this class, and other values unchanged."""
    if type(value) in (tuple, list):
        return type(value)(map(adopted, value))
    if type(value) is dict:
        return {name: adopted(item) for name, item in value.items()}
    return ours(value) if isinstance(value, ps.Dataset) else value


def ours(value: Any) -> Dataset:
    """Return a data set of penstock as one of this class."""
    if isinstance(value, Dataset):
        return value
    found = object.__new__(Dataset)
    vars(found).update(vars(value))
    if seeds.seed is not None and "seed" not in found._options._given:
        options = found._options._merged(ps.Options(seed=seeds.seed))
        options._freeze()
        found._options = options
    return found


class Dataset(ps.Dataset):
    """A stream of elements. `penstock.Dataset` documents its methods.

    >>> ds = Dataset.from_tensor_slices([1, 2, 3]).map(lambda x: x * 2)
    >>> [x.numpy() for x in ds]
    [np.int32(2), np.int32(4), np.int32(6)]
    """

    def __iter__(self) -> Any:
        return TensorIterator(self)

    def __getitem__(self, key: Any) -> Any:
        return _back(super().__getitem__(key))

    @staticmethod
    def from_tensors(tensors: Any, name: Any = None) -> Dataset:
        """Return a data set with `tensors` as its only element."""
        return ours(ps.Dataset.from_tensors(_values(tensors)))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Any = None) -> Dataset:
        """Return the slices of arrays along their first axis. Python's integers become int32, floats float32."""
        return ours(ps.Dataset.from_tensor_slices(_values(tensors)))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: Any = None,
    ) -> Dataset:
        """Return the elements of `generator(*args)`. The arguments are numpy values there, as in TensorFlow."""
        signature = None if output_signature is None else map_leaves(lowered, output_signature)
        if signature is None and output_types is not None:
            signature = create._signature(plain_nest(output_types), output_shapes)
        values = None if args is None else tuple(map(array_of, args))
        function = generator if signature is None or not callable(generator) else _converting(generator, signature)
        return ours(ps.Dataset.from_generator(function, args=values, output_signature=signature))

    @staticmethod
    def range(*args: Any, output_type: Any = np.int64, name: Any = None) -> Dataset:
        """Return the integers of Python's `range`."""
        return ours(ps.Dataset.range(*(int(lowered(arg)) for arg in args), output_type=plain(output_type)))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: Any = None) -> Dataset:
        """Return a data set whose elements combine one element of each given data set."""
        return ours(ps.Dataset.zip(*args, datasets=datasets))

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """Return `transformation_func(self)`."""
        return adopted(super().apply(transformation_func))

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: Any = None) -> Any:
        """Call `reduce_func` for each element, and return its last state as tensors."""
        state = returned(list(initial_state) if type(initial_state) is tuple else map_leaves(_value, initial_state))
        return map_leaves(raised, super().reduce(state, called(reduce_func)))

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any], name: Any = None) -> Dataset:
        """Return a map in which `scan_func(state, element)` returns the next state and a result."""
        return ours(super().scan(map_leaves(_value, initial_state), called(scan_func)))

    def interleave(self, map_func: Any, *args: Any, **kwargs: Any) -> Dataset:
        """Return elements of the data sets from `map_func`, in turn."""
        options = {name: lowered(item) for name, item in kwargs.items() if name not in _IGNORED}
        return ours(super().interleave(_opening(map_func), *map(lowered, args), **options))

    def flat_map(self, map_func: Any, name: Any = None) -> Dataset:
        """Return the elements of the data sets from `map_func`, one data set after the other."""
        return ours(super().flat_map(_opening(map_func)))

    def cardinality(self, name: Any = None) -> Count:
        """Return the number of elements, or a constant if it is infinite or unknown."""
        return Count(super().cardinality())

    def __len__(self) -> int:
        return int(super().__len__())

    def unbatch(self, name: Any = None) -> Dataset:
        """Return the rows of batches as elements."""
        return ours(super().unbatch())

    @property
    def element_spec(self) -> Any:
        """The nest of `tf.TensorSpec` of an element."""
        return map_leaves(raised, super().element_spec)

    @property
    def output_types(self) -> Any:
        """TensorFlow 1's name for the dtypes of `element_spec`."""
        return map_leaves(lambda spec: spec.dtype, self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """TensorFlow 1's name for the shapes of `element_spec`."""
        return map_leaves(lambda spec: spec.shape, self.element_spec)

    def make_one_shot_iterator(self) -> TensorIterator:
        """TensorFlow 1's name for `iter(ds)`."""
        return TensorIterator(self)

    make_initializable_iterator = make_one_shot_iterator

    def __getattr__(self, name: str) -> Any:
        if isinstance(getattr(Dataset, name, None), property):
            return object.__getattribute__(self, name)  # raises the AttributeError of the property
        raise unknown("tf.data.Dataset", name, _METHODS, dir(Dataset))


CONVERSIONS[ps.Dataset] = ours


def _converting(generator: Callable[..., Any], signature: Any) -> Any:
    """Return a generator whose elements are cast to the dtypes of the signature, as in TensorFlow."""

    def generated(*args: Any) -> Any:
        return (_cast(element, signature) for element in generator(*args))

    return as_written_by(generated, generator)


def _cast(element: Any, spec: Any) -> Any:
    if isinstance(spec, dict):
        return (
            {name: _cast(element[name], part) for name, part in spec.items()} if set(element) == set(spec) else element
        )
    if isinstance(spec, tuple):
        fits = isinstance(element, (tuple, list)) and len(element) == len(spec)
        return tuple(_cast(*pair) for pair in builtins.zip(element, spec, strict=True)) if fits else element
    if not isinstance(spec, ps.TensorSpec):
        return lowered(element)
    value = array_of(list(element) if isinstance(element, tuple) else element)
    known = isinstance(value, (np.ndarray, np.generic)) and not np.asarray(value).dtype.hasobject
    return value.astype(spec.dtype) if known and spec.dtype is not bytes else value


def _opening(function: Any) -> Any:
    """Return a function that opens data sets. penstock reads the file names of its own classes itself."""
    return getattr(function, "__penstock_opens__", None) or called(function)


def _values(tensors: Any) -> Any:
    """Return a nest of tensors for penstock, with TensorFlow's dtypes for Python's numbers."""
    if isinstance(tensors, dict):
        return {name: _values(item) for name, item in tensors.items()}
    if isinstance(tensors, tuple):
        parts = [_values(item) for item in tensors]
        return type(tensors)(*parts) if hasattr(tensors, "_fields") else tuple(parts)
    return _value(tensors)


def _value(leaf: Any) -> Any:
    if isinstance(leaf, list) and any(isinstance(item, ps.Dataset) for item in leaf):
        return leaf
    if leaf is None or isinstance(leaf, (ps.Dataset, ps.SparseTensor, ps.RaggedTensor)):
        return lowered(leaf)
    if isinstance(leaf, (list, int, float, str, bytes, Tensor)):
        return array_of(leaf)
    if type(leaf).__module__.partition(".")[0] == "pandas":
        return array_of(leaf.to_numpy())
    return leaf


def _back(result: Any) -> Any:
    """Convert the result of a penstock method for TensorFlow code."""
    if isinstance(result, ps.Dataset) or type(result) in (list, tuple, dict):
        made = adopted(result)
        return made if isinstance(made, ps.Dataset) else map_leaves(_raised, made)
    return raised(result)


def _raised(leaf: Any) -> Any:
    return leaf if isinstance(leaf, ps.Dataset) else raised(leaf)


def _given(value: Any) -> Any:
    """Convert an argument of a method for penstock."""
    if isinstance(value, Dataset):  # penstock's methods need specs with numpy dtypes
        found = object.__new__(ps.Dataset)
        vars(found).update(vars(value))
        return found
    if inspect.isroutine(value) or inspect.isclass(value):
        return called(value) if not isinstance(value, type) else value
    if isinstance(value, (dict, tuple)) and not isinstance(value, ps.Options):
        leaves, structure = flatten(value)
        return structure.build([_given(leaf) for leaf in leaves])
    return lowered(value)


_PLAIN = {
    "as_numpy_iterator", "iterator", "to_torch", "to_jax", "explain", "lint", "memory", "show", "options", "profile",
    "what_if", "ignored", "as_iterable_dataset", "save", "fingerprint",
}  # fmt: skip


def _through(name: str, method: Any) -> Any:
    """Wrap a method of penstock: convert its arguments and its result."""

    @functools.wraps(method)
    def through(*args: Any, **kwargs: Any) -> Any:
        given = [_given(arg) for arg in args]
        named = {key: _given(item) for key, item in kwargs.items() if key not in _IGNORED}
        return _back(method(*given, **named))

    return through


def _complete() -> None:
    """Add every public method of penstock that this class does not define."""
    for name in dir(ps.Dataset):
        if name.startswith("_") or name in vars(Dataset):
            continue
        kept = inspect.getattr_static(ps.Dataset, name)
        if isinstance(kept, staticmethod):
            setattr(Dataset, name, staticmethod(_through(name, kept.__func__)))
        elif inspect.isfunction(kept) and name not in _PLAIN:
            setattr(Dataset, name, _through(name, kept))


_complete()
