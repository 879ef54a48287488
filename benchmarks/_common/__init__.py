"""Shared code of the benchmarks: input data, sides that run in turn in separate processes, one table."""
