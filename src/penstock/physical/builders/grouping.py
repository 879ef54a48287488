"""How windows, groups and buckets run."""
