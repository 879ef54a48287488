"""What AUTOTUNE means: a pure function from what was measured to the knobs, and what remembers them."""
