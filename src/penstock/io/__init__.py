"""Records, serialized examples and encoded images, with the names and meaning of `tf.io` and `tf.train`.

The image codecs are those of `penstock.image`, which documents them. Heavy modules are imported on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.io.public import *  # noqa: F403 - a type checker's; the names stand there once
else:
    from penstock.habits.tables import IO
    from penstock.habits.teach import namespace

    __getattr__, __dir__ = namespace("penstock.io", IO)
