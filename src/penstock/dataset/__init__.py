"""The fluent face: every method builds one node."""
