"""Constants that the JPEG kernels for a Block and their callers share."""

# The columns of a header's row. Positions count from the start of the file.
TAKEN, HEIGHT, WIDTH, COMPONENTS = 0, 1, 2, 3
ACROSS, DOWN = 4, 5  # samples of luma for one of colour, along a row and along a column
SCAN, RESTART = 6, 7  # start of the coded data; blocks of samples between restart markers, 0 for none
QUANT, DC, AC = 8, 11, 14  # starts of the tables of each of three components
FIELDS = 17

NO_FLIP, BEFORE, AFTER = 0, 1, 2  # of a flip: none, or before or after the resize

# Tables of Huffman codes: DC, then AC, for three components.
LOOK = 10  # bits of a lookup
KEPT = 272  # counts of codes of 1 to 16 bits, up to 256 symbols, and 1 if the table is built
CODES = 6 * (KEPT + 1) + (6 << LOOK) + 2 * 6 * 17  # 64-bit numbers in the memory of all tables
