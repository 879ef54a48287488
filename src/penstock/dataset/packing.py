"""Methods of `Dataset`: sequences packed into rows, batches by tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


class Packing(Base):
    """Mixed into `Dataset`."""

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
        """Several sequences side by side in rows of `length`, so that little of a batch is padding.

        Elements are 1-D arrays, or nests of them. Each row comes with the numbers of its segments, from 1 on and 0 for
        padding, and the positions within each segment, both int32 of shape (length,). A lone array becomes a dict of
        "tokens", "segment_ids" and "positions"; the array under a key "x" of a dict gets the neighbours
        "x_segment_ids" and "x_positions"; one in a tuple becomes a dict like that of a lone array.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_generator(lambda: [[1, 2, 3], [4, 5, 6, 7], [8, 9]])
        >>> for row in ds.pack(5):
        ...     print(row["tokens"], row["segment_ids"], row["positions"])
        [1 2 3 8 9] [1 1 1 2 2] [0 1 2 0 1]
        [4 5 6 7 0] [1 1 1 1 0] [0 1 2 3 0]

        Several features are packed together: a sequence goes where all of them have room. `length` is one integer, or
        a nest like the elements with one for each feature; so is `padding_values`.

        A sequence goes to the first open row with room ("first_fit"), or to the fullest ("best_fit"). Without one it
        opens a row. A row is given as soon as it is full or has `max_sequences`. If then more than `open_rows` are
        open, one of them is given: the oldest if more than 4 × `open_rows` rows were opened since, otherwise the
        fullest. What is open at the end follows in the order of opening, unless `drop_remainder`. Best fit pads least
        (Johnson, "Near-optimal bin packing algorithms", 1973, compares both).

        A sequence that is longer than a row is one failure; with `too_long` "truncate" it is cut to
        the row, with "split" into rows of which each is a segment, and with "drop" it is left out, counted in the log.
        An element that fails is in no row, and is one failure at its turn. Empty sequences take no place. The rows
        follow from the sequences and their order alone; a checkpoint holds no tokens.

        Raises InvalidTypeError for elements that are no 1-D arrays of numbers.
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
        """Padded batches of as many neighbours as `max_tokens` allows: many short elements, or few long ones.

        A batch costs its number of elements × its longest length, padding included, or with `cost="sum"` the lengths
        together. The length of an element is `length_func(element)`, or else the first extent of its longest
        component; it counts as at least 1, and rounded up to `multiple_of`, to which batches are padded too.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_generator(lambda: [[1], [2, 3], [4, 5, 6], [7, 8, 9, 10], [11]])
        >>> for batch in ds.batch_by_tokens(6):
        ...     print(batch.tolist())
        [[1, 0], [2, 3]]
        [[4, 5, 6]]
        [[7, 8, 9, 10]]
        [[11]]

        With `sort_window` so many elements at a time are sorted by length before they are cut into batches, which
        leaves little padding. The batches of a window come in an order drawn from `seed` (from the options' seed
        without one), anew in each pass unless `reshuffle_each_iteration` is false, or as they ascend without
        `shuffle_batches`. A larger window pads less, and holds so many elements in memory.

        >>> [batch.shape for batch in ds.batch_by_tokens(6, sort_window=5, shuffle_batches=False)]
        [(3, 2), (1, 3), (1, 4)]

        `padded_shapes` and `padding_values` are those of `padded_batch`. An element that alone costs more than
        `max_tokens` is one failure; with `too_long` "alone" it is a batch of its own, and with "drop" it is left out,
        counted in the log. An element that fails is in no batch, and is one failure at its turn, in a sorted window
        before the window's batches. A checkpoint holds no elements: those that wait are read again. Raises
        InvalidTypeError where the elements have no length and there is no `length_func`.
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
