"""Facts about a user's function: its code, the objects that it uses, its owner, and its side effects."""
