"""Image functions on numpy arrays, with the names and meaning of tf.image and tf.io."""

from typing import TYPE_CHECKING

from penstock.trace.lift import FAMILIES, Family

FAMILIES["image"] = Family(work="works on images", fuse="penstock.image.fuse:fuse")

if TYPE_CHECKING:
    # mypy reads only the literal part of an `__all__` in a circle of imports
    from penstock.image.augment.covering import *  # noqa: F403
    from penstock.image.augment.drawing import *  # noqa: F403
    from penstock.image.augment.mixing import *  # noqa: F403
    from penstock.image.augment.policies import *  # noqa: F403
    from penstock.image.augment.random_parts import *  # noqa: F403
    from penstock.image.colour.adjust import *  # noqa: F403
    from penstock.image.colour.levels import *  # noqa: F403
    from penstock.image.colour.spaces import *  # noqa: F403
    from penstock.image.geometry.affine import *  # noqa: F403
    from penstock.image.geometry.crops import *  # noqa: F403
    from penstock.image.geometry.flips import *  # noqa: F403
    from penstock.image.geometry.projective import *  # noqa: F403
    from penstock.image.public import *  # noqa: F403
else:
    from penstock.habits.tables import IMAGE
    from penstock.habits.teach import namespace

    __getattr__, __dir__ = namespace("penstock.image", IMAGE)
