"""Methods of `Dataset`: to_torch, to_jax, to_keras, to_tf, from_tf, as_iterable_dataset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from penstock.dataset.base import Base, Located
from penstock.errors import InvalidArgumentError, optional_package, user_location
from penstock.plan.batching import Rebatch
from penstock.plan.counted import counted
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode
from penstock.plan.ops import BatchNode, Map, Prefetch, Repeat, Shard, Take

if TYPE_CHECKING:
    from penstock.adaptors.jax import JaxLoader
    from penstock.adaptors.loader import Share
    from penstock.adaptors.torch import TorchLoader
    from penstock.dataset.dataset import Dataset
    from penstock.runtime.run import Iterator

_ABOVE = (Map, Prefetch, Repeat, Rebatch)  # steps that, after a batch, act on each batch alone


def parted(plan: Node, count: int, index: int) -> Node:
    """Return the plan of shard `index` of `count`. All shards have the same number of elements, of equal size.

        prefetch · batch(32) · map · x    →    prefetch · batch(32) · shard(2, 0) · take(even) · map · x

    Rewrites move the shard towards the source. Up to `count - 1` elements at the end are dropped. If the plan has no
    batch step, its outputs are sharded.

    Raise an InvalidArgumentError if only an iteration can determine the number of elements.
    """
    batch = _batch_of(plan)
    return _part(plan, count, index) if batch is None else _with_part(plan, batch, count, index)


def _batch_of(plan: Node) -> UnaryNode | None:
    while isinstance(plan, _ABOVE):
        plan = plan.input
    return plan if isinstance(plan, BatchNode) else None


def _with_part(plan: Node, batch: UnaryNode, count: int, index: int) -> Node:
    assert isinstance(plan, UnaryNode)
    below = _part(batch.input, count, index) if plan is batch else _with_part(plan.input, batch, count, index)
    return replace(plan, input=below)


def _part(plan: Node, count: int, index: int) -> Node:
    size = counted(plan)
    if size == UNKNOWN_CARDINALITY:
        message = f"{count} ranks need equally many steps, but the number of elements of {plan.label} is unknown."
        hint = (
            "Declare it with assert_cardinality(n), or add repeat() and count the steps, or leave shard= out and call "
            "shard(count, index) yourself."
        )
        raise InvalidArgumentError(message, hint=hint)
    even = plan if size == INFINITE_CARDINALITY or size % count == 0 else Take(input=plan, count=size - size % count)
    return Shard(input=even, num_shards=count, index=index)


class Frameworks(Base):
    """Methods for torch, JAX, Keras and TensorFlow."""

    if TYPE_CHECKING:  # defined by other base classes of Dataset

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
        """Return a loader of torch tensors.

        The loader yields the elements of this data set (batches stay as they are) with torch tensors in the same nest.
        On the CPU, a tensor shares the memory of its batch; you may change and keep it. To a CUDA device, a thread
        copies batches in advance, from pinned memory and on a separate stream. Bool, integers, floats, bfloat16 and
        complex numbers keep their dtype.

        The loader has `len`, `set_epoch`, `state_dict` and `load_state_dict`, as torchdata's StatefulDataLoader. A
        state does not count batches that were copied in advance.

        Args:
            device: Device of the tensors. Default: the CPU.
            pin_memory: `"auto"` pins the memory that is copied to a CUDA device, False does not. True also pins tensors
                that stay on the CPU, for copies of your own.
            prefetch: Largest number of batches that are copied to the device in advance, at least 1. Default: 2.
            dtype: Dtype of all floating-point columns, or a dict from column to dtype. The conversion happens on the
                device.
            as_numpy: Columns that stay numpy arrays, such as strings: `["id"]`, or `["0.id"]` for a component of a
                tuple.
            shard: `"rank"` gives each rank of `torch.distributed` its own shard of the elements, `(count, index)` the
                shard that you name. Elements are sharded before they are batched. All shards have the same number of
                steps, so up to `count - 1` elements at the end are dropped. False means that all ranks read all
                elements.
            ragged: `"list"` makes a list of tensors of a ragged column, one for each element of the batch.

        Returns:
            A loader. Each iteration over it is an epoch.

        Raises:
            MissingDependencyError: If torch is not installed.
            InvalidTypeError: If torch has no type for a column: byte strings, sparse tensors, dates, or ragged tensors
                without `ragged="list"`. If the spec is unknown, the first element raises the error.
            InvalidArgumentError: If `shard` is passed and the number of elements is unknown.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(5).map(lambda x: {"x": x / 2, "label": x % 2}).batch(3)
            >>> for batch in ds.to_torch(dtype="float32"):
            ...     print(batch["x"], batch["label"].dtype)
            tensor([0.0000, 0.5000, 1.0000]) torch.int64
            tensor([1.5000, 2.0000]) torch.int64
        """
        with Located("to_torch"):
            from penstock.adaptors.loader import share_of
            from penstock.adaptors.torch import Tensors, TorchLoader, agree, own_part, world

            torch = optional_package("torch", "to_torch", "torch")
            share = share_of(shard, "rank", lambda: own_part(torch))
            if shard is None:
                _warn_of_ranks(self._plan, world(torch)[0], "rank")
            dataset = self._part(share)
            agreed = self._agreed(share, partial(agree, torch))
            tensors = Tensors(torch, dtype, as_numpy, dataset._plan.spec, ragged)
            return TorchLoader(
                dataset, torch, tensors, device=device, pin_memory=pin_memory, prefetch=prefetch, agreed=agreed
            )

    def as_iterable_dataset(self) -> Any:
        """Return a `torch.utils.data.IterableDataset` of the same elements, for torch's own DataLoader.

        Each worker of the DataLoader yields a shard, so that all workers together yield each element once. Batch in
        this data set and pass `batch_size=None` to the DataLoader, or let torch batch. `to_torch` needs no DataLoader
        and is faster.

        The iterations are the epochs from 0. Call `set_epoch` of the returned object before each epoch if there are
        workers and if shuffles must depend on the epoch instead of torch's seed.

        Returns:
            The IterableDataset.

        Raises:
            MissingDependencyError: If torch is not installed.

        Example:
            >>> import penstock as ps, torch
            >>> ds = ps.Dataset.range(5).batch(2).as_iterable_dataset()
            >>> [batch.tolist() for batch in torch.utils.data.DataLoader(ds, batch_size=None)]
            [[0, 1], [2, 3], [4]]
        """
        with Located("as_iterable_dataset"):
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
        """Return a loader of JAX arrays.

        The loader yields the elements of this data set (batches stay as they are) with JAX arrays in the same nest. A
        thread copies batches to their devices in advance. On the CPU, an array shares the memory of its batch if
        possible; penstock does not write to this memory again. As everywhere in JAX, 64-bit numbers become 32-bit
        numbers unless `jax_enable_x64` is set.

        The loader has `len`, `set_epoch`, `state_dict` and `load_state_dict`. `penstock.jax` has items for Orbax
        checkpoints.

        Args:
            sharding: Sharding of the arrays: a `NamedSharding` or another `jax.sharding.Sharding`, a device, or a dict
                from column to sharding. Each process passes its own batches, which become shards of global arrays.
            prefetch: Largest number of batches that are copied to the devices in advance. Default: 2.
            as_numpy: Columns that stay numpy arrays, such as strings.
            shard: `"process"` gives each process of a program on several hosts its own shard of the elements, `(count,
                index)` the shard that you name. Elements are sharded before they are batched. All shards have the same
                number of steps, so up to `count - 1` elements at the end are dropped. False means that all processes
                read all elements.

        Returns:
            A loader. Each iteration over it is an epoch.

        Raises:
            MissingDependencyError: If JAX is not installed.
            InvalidTypeError: If JAX has no type for a column: byte strings, ragged and sparse tensors, or dates.
            InvalidArgumentError: If `shard` is passed and the number of elements is unknown. During the iteration: if
                32 bits cannot hold an integer, or if an array does not fit its sharding.

        Example:
            >>> import penstock as ps
            >>> [batch.tolist() for batch in ps.Dataset.range(5).batch(3).to_jax()]
            [[0, 1, 2], [3, 4]]
        """
        with Located("to_jax"):
            from penstock.adaptors.jax import Arrays, JaxLoader, agree, own_part
            from penstock.adaptors.loader import share_of

            jax = optional_package("jax", "to_jax", "jax")
            share = share_of(shard, "process", lambda: own_part(jax))
            if shard is None:
                _warn_of_ranks(self._plan, own_part(jax)[0], "process")
            dataset = self._part(share)
            arrays = Arrays(jax, sharding, as_numpy, dataset._plan.spec)
            return JaxLoader(dataset, jax, arrays, prefetch=prefetch, agreed=self._agreed(share, agree))

    def to_keras(self, *, class_weight: Mapping[int, float] | None = None) -> Any:
        """Return an object for `fit`, `evaluate` and `predict` of Keras 3, on every backend.

        Write `model.fit(ds.to_keras(), epochs=3)`. The elements are batches `x`, `(x, y)` or `(x, y, sample_weight)`,
        where `x` may be a dict of inputs. Each Keras epoch is an epoch of the data set. For `steps_per_epoch`, pass an
        infinite data set, such as `ds.repeat().to_keras()`: Keras continues with it in the next epoch. String and
        ragged columns work with layers on the TensorFlow backend only.

        Args:
            class_weight: Weight of each class, by its integer label. Pass it here, as Keras raises an error for
                `class_weight` in `fit` with data of this kind.

        Returns:
            A data adapter of Keras.

        Raises:
            MissingDependencyError: If Keras is not installed.
            InvalidTypeError: If `class_weight` is not a dict of integers and numbers.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_tensor_slices(([[1.0], [2.0], [3.0]], [0, 1, 0])).batch(2)
            >>> adapter = ds.to_keras(class_weight={1: 5.0})
            >>> adapter.num_batches, [weights.tolist() for x, y, weights in adapter.get_numpy_iterator()]
            (2, [[1.0, 5.0], [1.0]])
        """
        with Located("to_keras"):
            from penstock.adaptors.keras import ClassWeights, adapter_type

            return adapter_type()(self, None if class_weight is None else ClassWeights(class_weight))

    def to_tf(self) -> Any:
        """Return a `tf.data.Dataset` of the same elements.

        Each iteration over it is an epoch of this data set. Byte strings are `tf.string`, ragged tensors are
        TensorFlow's. The elements pass through Python one after another, so batch before this call.

        Returns:
            The `tf.data.Dataset`.

        Raises:
            MissingDependencyError: If TensorFlow is not installed.
            InvalidTypeError: If tf.data has no type for a column.

        Example:
            >>> import penstock as ps
            >>> tensors = ps.Dataset.range(3).batch(2).to_tf()  # doctest: +SKIP
        """
        with Located("to_tf"):
            from penstock.adaptors.tensorflow import to_tf

            return to_tf(self.iterator, self._known.spec, self.cardinality(), seen=self._plan.spec is None)

    @staticmethod
    def from_tf(dataset: Any) -> Dataset:
        """Create a data set of the elements of a `tf.data.Dataset`, as numpy values.

        Strings are `bytes`. Ragged and sparse tensors are penstock's. A resumed iterator starts the data set again and
        discards the elements that the consumer has already received, so it is exact only if TensorFlow repeats its
        order.

        Args:
            dataset: The `tf.data.Dataset`.

        Returns:
            A data set of its elements.

        Raises:
            MissingDependencyError: If TensorFlow is not installed.
            InvalidTypeError: If `dataset` is not a `tf.data.Dataset`, or if a ragged tensor has an unknown rank.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_tf(tf.data.Dataset.range(3))  # doctest: +SKIP
        """
        with Located("from_tf"):
            from penstock.adaptors.tensorflow import checked, elements, signature
            from penstock.dataset.create import Create

            tf = checked(dataset)
            found = Create.from_generator(
                lambda: elements(tf, dataset), output_signature=signature(tf, dataset.element_spec)
            )
            count = int(dataset.cardinality())
            return found if count == tf.data.UNKNOWN_CARDINALITY else found.assert_cardinality(count)

    def _part(self, share: Share | None) -> Any:
        if share is None or share.count == 1:
            return self
        part = self._with(parted(self._plan, share.count, share.index))
        if counted(part._plan) == 0 != counted(self._plan):
            message = f"Each of {share.count} ranks needs an element or a full batch; {self._plan.label} has fewer."
            raise InvalidArgumentError(message, hint="Use fewer ranks or smaller batches, or repeat() the data set.")
        return part

    def _agreed(self, share: Share | None, agree: Callable[[Any], Any]) -> Callable[[int], None] | None:
        """Return a function that compares the data sets of all ranks before an epoch, or None without own shards."""
        if share is None or not share.own or share.count == 1:
            return None

        def agreed(epoch: int) -> None:
            from penstock.adaptors.loader import identity

            settings = self._options.seed, self._options.deterministic
            agree(identity(self._plan, settings, epoch, self.cardinality()))

        return agreed


def _warn_of_ranks(plan: Node, count: int, word: str) -> None:
    if count > 1 and not any(isinstance(node, Shard) for node in plan.walk()):
        message = (
            f'All {count} processes read the same elements. Pass shard="{word}" to give each process its own shard, '
            "or shard=False to read the same elements without this warning."
        )
        file, _, line = (user_location() or "").rpartition(":")
        warnings.warn_explicit(message, UserWarning, file, int(line or 0))
