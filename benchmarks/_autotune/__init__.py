"""What the benchmarks of the engine share: settings, workloads, and sides that run alone and in turn."""
