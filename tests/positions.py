"""What a pipeline gives, position by position: elements, and the failures in the place of others."""

import json
from itertools import islice

from penstock.dataset.base import inner
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import as_of_now
from penstock.runtime.executors import InlineExecutor
from penstock.testing import difference


def stage_of(dataset, epoch=0):
    """The stages of a data set, without workers, as it was written: no rewrites."""
    return lower(dataset._plan, Lowering(dataset.options(), InlineExecutor(), epoch, dataset=inner))


def given(stage, want=4):
    """The positions of a stage one by one, until it says for the second time that it has ended."""
    while True:
        try:
            block = stage.next(want)
        except Exception as error:
            yield error
            continue
        if block is None:
            assert stage.next(want) is None
            return
        yield from block.elements()


def positions(dataset, want=4, most=None, epoch=0):
    """All positions of an epoch, or the first `most`."""
    return list(islice(given(stage_of(dataset, epoch), want), most))


def texts(found):
    """Elements as Python values, failures by the name of their class."""
    return [
        type(item).__name__ if isinstance(item, Exception) else item.tolist() if hasattr(item, "tolist") else item
        for item in found
    ]


def same(found, wanted):
    """Raise AssertionError for positions that differ."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, Exception):
            assert (type(one), str(one)) == (type(other), str(other))
        else:
            assert difference(one, other) is None


def assert_continues_everywhere(dataset, most=None):
    """Saved after any call, through JSON, restored with Blocks of another size, a stage gives the same positions.

    So it does if it is saved again before anything is asked of it.
    """
    wanted = positions(dataset, 3, most)
    for want, again in ((1, 4), (3, 1), (10, 4)):
        stage = stage_of(dataset)
        before, ended = 0, False
        while not ended and (most is None or before < most):
            state = json.loads(json.dumps(as_of_now(stage.state())))
            restored = stage_of(dataset)
            restored.state()
            restored.restore(state)
            saved_again = json.loads(json.dumps(as_of_now(restored.state())))
            left = None if most is None else most - before
            same(list(islice(given(restored, again), left)), wanted[before:])
            if saved_again != state:
                twice = stage_of(dataset)
                twice.restore(saved_again)
                same(list(islice(given(twice, again), left)), wanted[before:])
            try:
                block = stage.next(want)
            except Exception:
                before += 1
            else:
                ended = block is None
                before += 0 if ended else block.size
