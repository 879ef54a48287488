"""The type of an element, as type checkers know it: `Dataset[T]` and its iterator are generic over it.

Nothing looks at it while a program runs. A `Dataset` without brackets has elements of any type. It is covariant, as a
data set is only read: a `Dataset[np.int64]` may stand where a `Dataset[np.integer[Any]]` is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # defaults are in typing from Python 3.13 on; checkers bring this module

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)
