"""Analysis of a running pipeline: the cost of each step, the bottleneck, and predictions for changes."""
