"""Image functions on numpy arrays, with the names and meaning of tf.image and tf.io."""

from typing import TYPE_CHECKING

from penstock.trace.lift import FAMILIES, Family

FAMILIES["image"] = Family(work="works on images", fuse="penstock.image.fuse:fuse")

if TYPE_CHECKING:
    from penstock.image.public import *  # noqa: F403
else:
    from penstock.habits.tables import IMAGE
    from penstock.habits.teach import namespace

    __getattr__, __dir__ = namespace("penstock.image", IMAGE)
