"""Methods of `Dataset`: sequences packed into rows, batches by tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


class Packing(Base):
    """Methods for packed rows and batches by tokens."""

    def pack(
        self,
        length: Any,
        *,
        strategy: str = "first_fit",
        open_rows: int = 64,
        max_sequences: int | None = None,
        padding_values: Any = None,
        too_long: str = "error",
        drop_remainder: bool = False,
    ) -> Dataset:
        """Pack several sequences into rows of the same length, so that batches contain little padding.

        Elements are one-dimensional arrays, or nests of them; the arrays of a nest are packed together. A sequence goes
        to an open row that has room for it. If no row has room, the sequence opens a new row. A row is yielded as soon
        as it is full or has `max_sequences`. If more than `open_rows` are open, one of them is yielded: the oldest row
        if more than `4 * open_rows` rows have been opened since, otherwise the fullest one. At the end of the input,
        the open rows follow in the order of opening.

        Empty sequences are dropped. If an element fails, it is in no row. A checkpoint contains no tokens: a resumed
        iterator reads the sequences of open rows again.

        Args:
            length: Length of a row. For elements that are nests, also a nest with one length for each array.
            strategy: `"first_fit"` uses the first open row that has room, `"best_fit"` the fullest. Best fit needs the
                least padding (Johnson, "Near-optimal bin packing algorithms", 1973). Default: `"first_fit"`.
            open_rows: Largest number of rows that are open at the same time. Default: 64.
            max_sequences: Largest number of sequences in a row. Default: no limit.
            padding_values: Value of the padding, or a nest with one value for each array. Default: 0.
            too_long: Behaviour for a sequence that is longer than a row. `"error"`: the element fails. `"truncate"`:
                the sequence is cut. `"split"`: the sequence is split into several rows. `"drop"`: the sequence is
                dropped and counted in the log. Default: `"error"`.
            drop_remainder: If True, rows that are open at the end of the input are dropped. Default: False.

        Returns:
            A data set of rows. Each array comes with its segment ids (from 1, and 0 for padding) and the positions
            within each segment, both int32. An array that is not a value of a dict becomes a dict of "tokens",
            "segment_ids" and "positions". An array with the key "x" of a dict gets the additional keys "x_segment_ids"
            and "x_positions".

        Raises:
            InvalidTypeError: If the elements are not one-dimensional arrays of numbers.
            InvalidArgumentError: If an argument is out of range, or, during the iteration, if a sequence is longer than
                a row.

        Determinism: The rows depend on the sequences and their order only.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_generator(lambda: [[1, 2, 3], [4, 5, 6, 7], [8, 9]])
            >>> for row in ds.pack(5):
            ...     print(row["tokens"], row["segment_ids"], row["positions"])
            [1 2 3 8 9] [1 1 1 2 2] [0 1 2 0 1]
            [4 5 6 7 0] [1 1 1 1 0] [0 1 2 3 0]
        """
        from penstock.plan.packing import Pack

        return self._then(
            Pack,
            length=length,
            strategy=strategy,
            open_rows=open_rows,
            max_sequences=max_sequences,
            padding_values=padding_values,
            too_long=too_long,
            drop_remainder=bool(drop_remainder),
        )

    def batch_by_tokens(
        self,
        max_tokens: int,
        length_func: Callable[..., Any] | None = None,
        *,
        cost: str = "padded",
        max_elements: int | None = None,
        multiple_of: int = 1,
        padded_shapes: Any = None,
        padding_values: Any = None,
        sort_window: int | None = None,
        shuffle_batches: bool = True,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
        too_long: str = "error",
    ) -> Dataset:
        """Batch as many consecutive elements as a number of tokens allows: many short elements, or few long ones.

        If an element fails, it is in no batch. A checkpoint contains no elements: a resumed iterator reads the elements
        of open batches again.

        Args:
            max_tokens: Largest cost of a batch.
            length_func: A function of an element that returns its length. Default: the first dimension of the longest
                component. A length counts as at least 1.
            cost: `"padded"`: the cost of a batch is its number of elements times its longest length. `"sum"`: the cost
                is the sum of the lengths. Default: `"padded"`.
            max_elements: Largest number of elements in a batch. Default: no limit.
            multiple_of: Lengths are rounded up to a multiple of this number, and batches are padded to it. Default: 1.
            padded_shapes: As in `padded_batch`.
            padding_values: As in `padded_batch`.
            sort_window: Number of elements that are sorted by length before they are batched. A larger window needs
                less padding and more memory. By default, elements are not sorted.
            shuffle_batches: If True, the batches of a window are yielded in random order. If False, they are yielded in
                ascending order of length. Default: True.
            seed: Seed of this order. By default it depends on `Options.seed` and the position of the step in the plan.
            reshuffle_each_iteration: If True, each epoch has another order. Default: True.
            too_long: Behaviour for an element whose cost is larger than `max_tokens`. `"error"`: the element fails.
                `"alone"`: it is a batch of its own. `"drop"`: it is dropped and counted in the log. Default: `"error"`.

        Returns:
            A data set of padded batches.

        Raises:
            InvalidTypeError: If the elements have no length and there is no `length_func`.
            InvalidArgumentError: If an argument is out of range, or, during the iteration, if an element costs more
                than `max_tokens`.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_generator(lambda: [[1], [2, 3], [4, 5, 6], [7, 8, 9, 10], [11]])
            >>> for batch in ds.batch_by_tokens(6):
            ...     print(batch.tolist())
            [[1, 0], [2, 3]]
            [[4, 5, 6]]
            [[7, 8, 9, 10]]
            [[11]]
            >>> [batch.shape for batch in ds.batch_by_tokens(6, sort_window=5, shuffle_batches=False)]
            [(3, 2), (1, 3), (1, 4)]
        """
        from penstock.plan.packing import BatchByTokens

        return self._then(
            BatchByTokens,
            max_tokens=max_tokens,
            length_func=length_func,
            cost=cost,
            max_elements=max_elements,
            multiple_of=multiple_of,
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            sort_window=sort_window,
            shuffle_batches=bool(shuffle_batches),
            seed=seed,
            reshuffle_each_iteration=bool(reshuffle_each_iteration),
            too_long=too_long,
        )
