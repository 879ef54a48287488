"""Faults looked for at random, for as long as there is time: `python -m tests.storm`. See its README."""
