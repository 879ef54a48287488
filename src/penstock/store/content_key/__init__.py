"""Content keys: digests of a plan and its data that identify snapshots and caches, and reasons why two keys differ."""
