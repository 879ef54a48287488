"""Recording of a training run: the cost of its steps and all waiting times over time. See the README of `profiler`."""
