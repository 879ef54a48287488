"""What the parser remembers of the records before, and notes of the record it reads."""

from __future__ import annotations

import numpy as np

REMEMBERED = 512  # map entries of a record whose feature is guessed from the records before
UNKNOWN, UNWANTED = -1, -2  # in the memory, beside the numbers of entries
NO_MEMORY = np.full((2, REMEMBERED), UNKNOWN)
NOTES = 4  # numbers of each entry: see `parse`
