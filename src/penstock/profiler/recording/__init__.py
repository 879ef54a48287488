"""A training run recorded while it goes on: what its steps cost, who waited, when. See the README beside `profiler`."""
