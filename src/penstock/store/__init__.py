"""The memory cache, and the writers of saved data sets and of cache entries."""
