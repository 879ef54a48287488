"""Placement of caches (`Options.autocache`): measured in the first complete iteration, then decided and inserted."""
