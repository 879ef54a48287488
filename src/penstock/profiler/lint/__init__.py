"""Lint: advice found by examining a plan."""
