"""JPEGs of a Block from compiled code: what its kernels and those who call them say by number."""

# The columns of a header's row. Positions count from the start of the file.
TAKEN, HEIGHT, WIDTH, COMPONENTS = 0, 1, 2, 3
ACROSS, DOWN = 4, 5  # samples of luma for one of colour, along a row and along a column
SCAN, RESTART = 6, 7  # where the coded data begin; blocks of samples between restart markers, 0 for none
QUANT, DC, AC = 8, 11, 14  # where the tables of each of three components begin
FIELDS = 17

COPY, TIMES, OVER = 0, 1, 2  # what becomes of pixels: as they are, or resized and multiplied or divided
