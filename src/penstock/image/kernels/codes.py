"""The numbers by which kernels know operations."""

BRIGHTNESS, SATURATION, HUE, CONTRAST = range(4)  # of colours
MULTIPLY, DIVIDE, ADD, SUBTRACT = range(4)  # arithmetic with a number for each channel
LEFT_RIGHT, UP_DOWN = 1, 2  # bits of a flip
