"""Packages of penstock resolve as attributes, and importing penstock imports no framework."""

import subprocess
import sys

SCRIPT = """
import sys
import penstock as ps
for name in "catalog compat experimental formats image io jax profiler service testing torch viz".split():
    assert getattr(ps, name).__name__ == f"penstock.{name}"
    assert name in dir(ps)
assert {"torch", "jax", "keras", "tensorflow"}.isdisjoint(sys.modules)
"""


def test_packages_are_attributes():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=60)
