"""A search for faults with random cases, for a given time: `python -m tests.storm`. See its README."""
