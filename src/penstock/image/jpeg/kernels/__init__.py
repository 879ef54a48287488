"""Constants that the JPEG kernels for a Block and their callers share."""

# The columns of a header's row. Positions count from the start of the file.
TAKEN, HEIGHT, WIDTH, COMPONENTS = 0, 1, 2, 3
ACROSS, DOWN = 4, 5  # samples of luma for one of colour, along a row and along a column
SCAN, RESTART = 6, 7  # start of the coded data; blocks of samples between restart markers, 0 for none
QUANT, DC, AC = 8, 11, 14  # starts of the tables of each of three components
FIELDS = 17

COPY, TIMES, OVER = 0, 1, 2  # operation on pixels: none, or a resize with multiplication or division
