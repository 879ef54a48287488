"""What a recorded run says: whether it waits for data, for which step, and what a change would give."""
