"""What the benchmarks share: data made once, sides run in turn in processes of their own, one table."""
