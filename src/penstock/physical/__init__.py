"""Stages: what a plan becomes to run, over Blocks."""
