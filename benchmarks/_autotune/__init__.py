"""Shared code of the engine's benchmarks: settings, workloads, and sides that run alone and in turn."""
