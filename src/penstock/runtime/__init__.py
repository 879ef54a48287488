"""Stages running: workers and who owns them, segments, the iterator a user holds."""
