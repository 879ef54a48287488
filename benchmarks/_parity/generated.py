"""Generated pipelines of up to six steps: elements, their order, errors, cardinality and element_spec."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from random import Random

from _parity.check import Check, Comparer
from _parity.difference import difference
from _parity.kit import THEIRS
from _parity.outcome import outcome_of, outcome_of_call
from _parity.steps import LAST, SOURCES, STEPS

PIPELINES = int(os.environ.get("PARITY_PIPELINES", "1500"))
FIRST = int(os.environ.get("PARITY_FIRST", "0"))
MOST_STEPS = 6

MAY_FAIL = re.compile("batch|bucket")

PASTE = """from _parity.kit import OURS, THEIRS  # with PYTHONPATH=src:benchmarks
for K in (OURS, THEIRS):
    for element in K.build({text!r}).as_numpy_iterator():
        print(K.name, element)"""


def generated(compare: Comparer) -> None:
    for number in range(FIRST, FIRST + PIPELINES):
        texts = list(prefixes(Random(number)))
        compare.count += 1
        if difference(texts[-1]) is not None:
            found = shortest_difference(texts)
            if found is not None:
                compare.differs(f"pipeline {number}: {found}")


def shortest_difference(texts: list[str]) -> str | None:
    """Return the shortest prefix of a pipeline that differs.

    After an error the elements of later steps may differ (`Dataset.__iter__` in the list of differences). Nothing is
    compared from the first error on.
    """
    for text in texts:
        found = difference(text)
        if found is not None:
            return f"{found}\n{PASTE.format(text=text)}"
        if outcome_of(THEIRS, text).error is not None:
            return None
    return f"the difference does not occur again\n{PASTE.format(text=texts[-1])}"


def prefixes(rng: Random) -> Iterator[str]:
    """Yield a pipeline that is one step longer each time."""
    text = rng.choice(SOURCES)(rng)
    ds = THEIRS.build(text)
    yield text
    for _ in range(rng.randint(1, MOST_STEPS)):
        added = None
        while added is None:
            added = rng.choice(STEPS)(rng, ds.element_spec)
        last = added.endswith(LAST)
        added = added.removesuffix(LAST)
        text += added
        yield text
        try:
            ds = THEIRS.build(f"ds{added}", ds=ds)
        except Exception:  # TensorFlow refuses the step; the check requires the same of penstock
            return
        if last or (MAY_FAIL.search(added) and outcome_of_call(lambda: ds).error is not None):  # noqa: B023
            return  # after an error, some steps of TensorFlow crash when called again, and some fail for ever


CHECKS = (Check("generated pipelines", generated),)
