"""Steps: windows, groups and buckets."""
