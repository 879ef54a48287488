"""Entries: folders that passes of several processes fill, one behind the other, and read meanwhile."""
