"""What a user's function does: its code, what it uses, whose it is, and what it does beside giving its result."""
