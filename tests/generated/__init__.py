"""One module per group of steps: its meaning in plain Python (registered with `tests.reference.elements`) and `STEPS`,
the generated steps for `tests.strategies`.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module of this package, imported when first asked for: they import those that ask."""
    return tuple(import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
