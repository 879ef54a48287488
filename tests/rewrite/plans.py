"""What the tests of rules share: functions to map, and a plan after some rules or all."""

import penstock as ps
from penstock.rewrite.driver import rewrite


def pure(x):
    return x * 2


def also_pure(x):
    return x + 1


def impure(x):
    print(x)
    return x


def also_impure(x):
    print(x)
    return x


def opaque(x):
    """One that is called element by element, of which nobody can see when."""
    try:
        return x + 1
    except TypeError:
        return x


def odd(x):
    return x % 2 == 1


BASE = ps.Dataset.range(10)


def alone(*rules):
    """Options under which no other rules run."""
    return ps.Options(experimental_optimization={"apply_default_optimizations": False, **dict.fromkeys(rules, True)})


def rewritten(dataset, *rules):
    """The plan after some rules, named by their options, or after all."""
    return rewrite(dataset._plan, alone(*rules) if rules else ps.Options())[0]


def shape(plan):
    """The plan as names from the consumer's side down to the source."""
    return [type(node).__name__ for node in plan.walk()]


MIXED = BASE.map(pure).map(also_pure).filter(odd).filter(odd).map(pure)
