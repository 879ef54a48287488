"""The class `Dataset` and the functions that create data sets. Each method adds one node to a plan."""
