"""Methods of `Dataset`: to_torch, to_jax, to_keras, to_tf, from_tf, as_iterable_dataset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from penstock.dataset.base import Base
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate, optional_package, user_location
from penstock.plan.batching import BatchNode, Rebatch
from penstock.plan.counted import counted
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode
from penstock.plan.ops import Batch, Map, Prefetch, Repeat, Shard, Take

if TYPE_CHECKING:
    from penstock.adaptors.jax import JaxLoader
    from penstock.adaptors.loader import Share
    from penstock.adaptors.torch import TorchLoader
    from penstock.dataset.dataset import Dataset
    from penstock.runtime.run import Iterator

_BATCHES = (Batch, BatchNode)
_ABOVE = (Map, Prefetch, Repeat, Rebatch)  # a batch: they do the same to the batches of a part


def parted(plan: Node, count: int, index: int) -> Node:
    """The plan of part `index` of `count`; all parts have equally many elements of equal size.

        prefetch · batch(32) · map · x    →    prefetch · batch(32) · shard(2, 0) · take(even) · map · x

    Rewrites carry the shard on towards the source. Elements at the end that not every part would get one of are left
    out. Where no batch is seen, what comes out last is parted.

    Raises InvalidArgumentError where only a pass can tell how many elements there are.
    """
    batch = _batch_of(plan)
    return _part(plan, count, index) if batch is None else _with_part(plan, batch, count, index)


def _batch_of(plan: Node) -> UnaryNode | None:
    while isinstance(plan, _ABOVE):
        plan = plan.input
    return plan if isinstance(plan, _BATCHES) else None


def _with_part(plan: Node, batch: UnaryNode, count: int, index: int) -> Node:
    assert isinstance(plan, UnaryNode)
    below = _part(batch.input, count, index) if plan is batch else _with_part(plan.input, batch, count, index)
    return replace(plan, input=below)


def _part(plan: Node, count: int, index: int) -> Node:
    size = counted(plan)
    if size == UNKNOWN_CARDINALITY:
        message = f"{count} ranks cannot take equally many steps: how many elements {plan.label} gives shows in a pass."
        hint = (
            "Say it with assert_cardinality(n), make it endless with repeat() and count steps, or part it yourself, "
            "with shard(count, index), and leave shard= out."
        )
        raise InvalidArgumentError(message, hint=hint)
    even = plan if size == INFINITE_CARDINALITY or size % count == 0 else Take(input=plan, count=size - size % count)
    return Shard(input=even, num_shards=count, index=index)


T = TypeVar("T")


class Frameworks(Base):
    """Mixed into `Dataset`."""

    if TYPE_CHECKING:  # of the classes beside this one

        def cardinality(self) -> int: ...

        def iterator(self, *, epoch: int | None = None) -> Iterator: ...

        @property
        def _known(self) -> Any: ...

    def to_torch(
        self,
        device: Any = None,
        pin_memory: bool | str = "auto",
        prefetch: int = 2,
        dtype: Any = None,
        *,
        as_numpy: str | Sequence[str] = (),
        shard: str | tuple[int, int] | bool | None = None,
        ragged: Literal["list"] | None = None,
    ) -> TorchLoader:
        """A loader of torch tensors: the elements of this data set, batches as they are, in the same nest.

        On the CPU a tensor lies over the memory of the batch, which is its own: it may be written to and kept.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(5).map(lambda x: {"x": x / 2, "label": x % 2}).batch(3)
        >>> for batch in ds.to_torch(dtype="float32"):
        ...     print(batch["x"], batch["label"].dtype)
        tensor([0.0000, 0.5000, 1.0000]) torch.int64
        tensor([1.5000, 2.0000]) torch.int64

        - `device`: where the tensors are wanted. To a CUDA device a thread copies up to `prefetch` batches ahead of
          the step, from pinned memory (unless `pin_memory` is False) and on a stream of its own.
        - `pin_memory=True` pins tensors that stay on the CPU, for copies that you make yourself.
        - `dtype`: that of all floating-point columns, or a dict from column to dtype. It is converted on the device.
        - `as_numpy`: columns that stay as they are, such as text: `["id"]`, or `["0.id"]` inside a tuple.
        - `shard`: `"rank"` gives each rank of `torch.distributed` its own part, `(count, index)` the part that you
          name. Elements are parted before they are batched; each part has as many steps as the others, so up to
          `count - 1` elements at the end of a pass are left out. All ranks compare their data sets at the first step.
        - `ragged="list"`: a ragged column, as `ragged_batch` makes of arrays of differing length, becomes a list of
          tensors, one for each element of the batch, as the detectors of torchvision take boxes and labels.

        The loader has `len`, `set_epoch`, `state_dict` and `load_state_dict`, as torchdata's StatefulDataLoader:
        batches copied ahead are not counted as given. Bool, integers (also unsigned), floats, bfloat16 and complex
        numbers keep their dtype.

        Raises MissingDependencyError without torch; InvalidTypeError for a column that torch cannot hold (bytes,
        sparse, dates, ragged without `ragged="list"`), now or with the first element; InvalidArgumentError for `shard`
        where the number of elements is not known.
        """
        return _told("to_torch", lambda: self._to_torch(device, pin_memory, prefetch, dtype, as_numpy, shard, ragged))

    def _to_torch(
        self, device: Any, pin_memory: Any, prefetch: Any, dtype: Any, as_numpy: Any, shard: Any, ragged: Any
    ) -> TorchLoader:
        from penstock.adaptors.loader import identity, share_of
        from penstock.adaptors.torch import Tensors, TorchLoader, agree, own_part, world

        torch = optional_package("torch", "to_torch", "torch")
        share = share_of(shard, "rank", lambda: own_part(torch))
        if shard is None:
            _warn_of_ranks(self._plan, world(torch)[0], "rank")
        dataset = self._part(share)
        agreed = None
        if share is not None and share.own and share.count > 1:

            def agreed(epoch: int) -> None:
                agree(torch, identity(self._plan, self._settings(), epoch, self.cardinality()))

        tensors = Tensors(torch, dtype, as_numpy, dataset._plan.spec, ragged)
        return TorchLoader(
            dataset, torch, tensors, device=device, pin_memory=pin_memory, prefetch=prefetch, agreed=agreed
        )

    def as_iterable_dataset(self) -> Any:
        """A `torch.utils.data.IterableDataset` of the same elements, for torch's own DataLoader.

        Of several workers each gives a part: all of them together give each element once. Batch here, with
        `batch_size=None` there, or leave the batches to torch. `to_torch` needs no DataLoader and is quicker.

        >>> import penstock as ps, torch
        >>> ds = ps.Dataset.range(5).batch(2).as_iterable_dataset()
        >>> [batch.tolist() for batch in torch.utils.data.DataLoader(ds, batch_size=None)]
        [[0, 1], [2, 3], [4]]

        Its passes are the epochs from 0 on; `set_epoch` names another one, and is needed where there are workers for
        which shuffles are to follow from the epoch and not from torch's seed. Raises MissingDependencyError without
        torch.
        """
        return _told("as_iterable_dataset", self._as_iterable_dataset)

    def _as_iterable_dataset(self) -> Any:
        from penstock.adaptors.torch import iterable_type

        return iterable_type()(copy(self))

    def to_jax(
        self,
        sharding: Any = None,
        prefetch: int = 2,
        *,
        as_numpy: str | Sequence[str] = (),
        shard: str | tuple[int, int] | bool | None = None,
    ) -> JaxLoader:
        """A loader of JAX arrays: the elements of this data set, batches as they are, in the same nest.

        A thread puts up to `prefetch` batches on their devices ahead of the step; on the CPU an array lies over the
        memory of the batch where that is possible, and nobody writes to it any more.

        >>> import penstock as ps
        >>> [batch.tolist() for batch in ps.Dataset.range(5).batch(3).to_jax()]
        [[0, 1, 2], [3, 4]]

        - `sharding`: a `NamedSharding` (any `jax.sharding.Sharding`, or a device), or a dict from column to sharding.
          Each process gives its own batches, which are parts of global arrays.
        - `as_numpy`: columns that stay as they are, such as text.
        - `shard`: `"process"` gives each process of a program over several hosts its own part, `(count, index)` the
          part that you name. Elements are parted before they are batched, and each part has as many steps as the
          others: up to `count - 1` elements at the end of a pass are left out.

        The loader has `len`, `set_epoch`, `state_dict` and `load_state_dict`; `penstock.jax` has items for Orbax.
        64-bit numbers become 32-bit ones unless `jax_enable_x64` is set, as everywhere in JAX.

        Raises MissingDependencyError without JAX; InvalidTypeError for a column that JAX cannot hold (bytes, ragged,
        sparse, dates); InvalidArgumentError, in the place of a batch, for integers that 32 bits would cut off and for
        arrays that the sharding does not fit.
        """
        return _told("to_jax", lambda: self._to_jax(sharding, prefetch, as_numpy, shard))

    def _to_jax(self, sharding: Any, prefetch: Any, as_numpy: Any, shard: Any) -> JaxLoader:
        from penstock.adaptors.jax import Arrays, JaxLoader, agree, own_part
        from penstock.adaptors.loader import identity, share_of

        jax = optional_package("jax", "to_jax", "jax")
        share = share_of(shard, "process", lambda: own_part(jax))
        if shard is None:
            _warn_of_ranks(self._plan, own_part(jax)[0], "process")
        dataset = self._part(share)
        agreed = None
        if share is not None and share.own and share.count > 1:

            def agreed(epoch: int) -> None:
                agree(identity(self._plan, self._settings(), epoch, self.cardinality()))

        arrays = Arrays(jax, sharding, as_numpy, dataset._plan.spec)
        return JaxLoader(dataset, jax, arrays, prefetch=prefetch, agreed=agreed)

    def to_keras(self, *, class_weight: Mapping[int, float] | None = None) -> Any:
        """What `fit`, `evaluate` and `predict` of Keras 3 take, on every backend: `model.fit(ds.to_keras(), epochs=3)`.

        Elements are batches `x`, `(x, y)` or `(x, y, sample_weight)`, where `x` may be a dict of inputs. Each epoch is
        a pass. For `steps_per_epoch`, give a data set that does not end, such as `ds.repeat().to_keras()`: Keras goes
        on with it in the next epoch.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_tensor_slices(([[1.0], [2.0], [3.0]], [0, 1, 0])).batch(2)
        >>> adapter = ds.to_keras(class_weight={1: 5.0})
        >>> adapter.num_batches, [weights.tolist() for x, y, weights in adapter.get_numpy_iterator()]
        (2, [[1.0, 5.0], [1.0]])

        `class_weight` stands here because Keras ignores it in `fit` for data of this kind; there it is an error. A data
        set of unknown length may be of another length in each epoch. Text and ragged columns go to layers on the
        backend TensorFlow; the others have no such tensors, and the error names the column.

        Raises MissingDependencyError without Keras, InvalidTypeError for a `class_weight` that is no dict of classes.
        """
        return _told("to_keras", lambda: self._to_keras(class_weight))

    def _to_keras(self, class_weight: Any) -> Any:
        from penstock.adaptors.keras import ClassWeights, adapter_type

        return adapter_type()(self, None if class_weight is None else ClassWeights(class_weight))

    def to_tf(self) -> Any:
        """A `tf.data.Dataset` of the same elements, where TensorFlow is installed.

        Each of its passes is one of this data set. Byte strings are `tf.string`, ragged tensors TensorFlow's.
        Its elements pass through Python, one after the other: batch before.

        Raises MissingDependencyError without TensorFlow, InvalidTypeError for elements that tf.data does not have.
        """
        return _told("to_tf", self._to_tf)

    def _to_tf(self) -> Any:
        from penstock.adaptors.tensorflow import to_tf

        seen = self._plan.spec is None
        return to_tf(self.iterator, self._known.spec, self.cardinality(), seen=seen)

    @staticmethod
    def from_tf(dataset: Any) -> Dataset:
        """The elements of a `tf.data.Dataset` as numpy values, where TensorFlow is installed.

        Text is `bytes`, ragged and sparse tensors are penstock's. A pass that is continued from a state begins the data
        set anew and drops what had been given: it is as exact as TensorFlow's order repeats itself.

        Raises MissingDependencyError without TensorFlow; InvalidTypeError for what is no `tf.data.Dataset`, and for
        ragged tensors of unknown rank.
        """
        return _told("from_tf", lambda: _from_tf(dataset))

    def _part(self, share: Share | None) -> Any:
        if share is None or share.count == 1:
            return self
        part = self._with(parted(self._plan, share.count, share.index))
        if counted(part._plan) == 0 != counted(self._plan):
            message = f"Each of {share.count} ranks needs an element or a full batch; {self._plan.label} has fewer."
            raise InvalidArgumentError(message, hint="Use fewer ranks or smaller batches, or repeat() the data set.")
        return part

    def _settings(self) -> tuple[Any, ...]:
        return self._options.seed, self._options.deterministic


def _from_tf(dataset: Any) -> Dataset:
    from penstock.adaptors.tensorflow import checked, elements, signature
    from penstock.dataset.create import Create

    tf = checked(dataset)
    found = Create.from_generator(lambda: elements(tf, dataset), output_signature=signature(tf, dataset.element_spec))
    count = int(dataset.cardinality())
    return found if count == tf.data.UNKNOWN_CARDINALITY else found.assert_cardinality(count)


def _told(step: str, call: Callable[[], T]) -> T:
    """What `call` returns; its errors say which method was called, and where."""
    where = user_location()
    try:
        return call()
    except PenstockError as error:
        annotate(error, Context(step, where))
        raise


def _warn_of_ranks(plan: Node, count: int, word: str) -> None:
    if count > 1 and not any(isinstance(node, Shard) for node in plan.walk()):
        message = (
            f'All {count} processes get the same elements. Write shard="{word}" to give each its part, '
            "or shard=False if that is meant."
        )
        file, _, line = (user_location() or "").rpartition(":")
        warnings.warn_explicit(message, UserWarning, file, int(line or 0))
