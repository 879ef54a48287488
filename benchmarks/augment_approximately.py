"""How much faster are photographs augmented when it may be approximate?

The pipeline of `augment.py` with `experimental_optimization.approximate_image = True`: colours are changed after the
resize. Goal: ≥ 6 times tf.data, hoped for 7. The exact way stands beside it.

    python benchmarks/augment_approximately.py [--pairs N]
"""

from __future__ import annotations

from _common import augment_pipelines
from _common.duel import Pass, Side, duel
from _common.photographs import photographs


def approximate() -> Pass:
    ds = augment_pipelines.penstock(approximate=True)
    return lambda: augment_pipelines.count(ds)


def exact() -> Pass:
    ds = augment_pipelines.penstock()
    return lambda: augment_pipelines.count(ds)


def tf_data() -> Pass:
    ds = augment_pipelines.tf_data()
    return lambda: augment_pipelines.count(ds)


if __name__ == "__main__":
    duel(
        "augmented JPEG, approximately",
        Side("penstock", approximate),
        Side("tf.data", tf_data, needs="tensorflow", goal=6.0, hoped=7.0),
        Side("penstock, exact", exact),
        prepare=photographs,
    )
