"""Functions that move pixels: flips, crops, paddings, rotations. Values are copied or blended."""
