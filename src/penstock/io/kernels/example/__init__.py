"""The compiled parser of tf.train.Example.

It reads a Block of records into dense columns, in one call without the GIL.
"""

from __future__ import annotations

import numpy as np

# The table of expected features has a row for each entry. The constants name its columns and their values. They also
# name the fields of the memory about earlier records, the notes about the current record, and the statuses of a record.

KIND, SIZE, STRIDE, BASE, ROOM, DEFAULT, KEY_SIZE, KEY_AT, SPLITS = 0, 1, 2, 3, 4, 5, 6, 7, 8
FIRST, LAST = 9, 10  # eight bytes of the key each
# The usual spelling, see `expected_entry`: three words, and masks with the constant bits of the first two words.
WORD_0, MASK_0, WORD_1, MASK_1, WORD_2, AT_1, HEAD, LONGEST = 11, 12, 13, 14, 15, 16, 17, 18
FORM = 19
TABLE_COLUMNS = 20

# In KIND: the field number of the values in `Feature`.
BYTES, FLOAT, INT64 = 1, 2, 3

# In FORM: the features that are written to their row at once.
MANY, ONE_INT, ONE_FLOAT, ONE_STRING = 0, 1, 2, 3

NO_DEFAULT = -1  # in DEFAULT: a missing feature is an error
FROM_DEFAULT = -1  # in `starts`: the byte string is the default

# Factors of a key's hash, for its words and its size.
M1, M2, M3 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93


REMEMBERED = 512  # map entries of a record whose feature is guessed from earlier records
UNKNOWN, UNWANTED = -1, -2  # values in the memory besides entry numbers
NO_MEMORY = np.full((2, REMEMBERED), UNKNOWN)
NOTES = 4  # numbers of each entry: see `parse`


DONE, REJECTED, NO_ROOM = 0, 1, 2
