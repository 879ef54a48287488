"""Stages: the running form of a plan. Stages pass Blocks to each other."""
