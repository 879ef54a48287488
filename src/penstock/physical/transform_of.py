"""The transform that does what a step of the plan says."""

from __future__ import annotations

from penstock.keys import fold
from penstock.options import Options
from penstock.physical.transform import FilterTransform, FunctionTransform, MapTransform
from penstock.plan.ops import Filter, Map


def transform_of(step: Map | Filter, options: Options) -> FunctionTransform:
    """Its function draws from a key that follows from the data set's seed and the step's place in the plan."""
    settings = options.experimental_optimization
    vectorise = step.vectorise and settings.map_vectorization.enabled
    key = fold(options.seed, step.salt)
    if isinstance(step, Map):
        return MapTransform(
            step.function,
            step.label,
            step.where,
            vectorise=vectorise,
            key=key,
            approximate=settings.approximate_image,
            any_rank=step.any_rank,
        )
    return FilterTransform(step.predicate, step.label, step.where, vectorise=vectorise, key=key)
