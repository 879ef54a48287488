"""One byte budget for all buffers, and the users of the budget."""
