"""Execution of plans: workers and their scheduler, segments, and the iterator of the user."""
