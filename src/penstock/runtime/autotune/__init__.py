"""The meaning of AUTOTUNE: a pure function from measurements to knobs, and the storage of its results."""
