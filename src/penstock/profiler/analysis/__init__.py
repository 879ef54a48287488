"""A running pipeline measured: what each step costs, what limits it, what a change would give."""
