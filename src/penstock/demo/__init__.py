"""The demo trains the same net twice: with a naive input loop, and with a pipeline."""

from penstock.demo.run import run_demo
from penstock.demo.settings import Settings

__all__ = ["Settings", "run_demo"]
