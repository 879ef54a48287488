"""The class `Dataset` and the functions that create data sets. Each method adds one node to a plan."""

import penstock.dataset.dataset  # noqa: F401 - sets `Base._whole`, also if a worker process imports `base` first
