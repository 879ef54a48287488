"""The demo: one training run fed twice, naively and through a pipeline."""

from penstock.demo.run import run_demo
from penstock.demo.settings import Settings

__all__ = ["Settings", "run_demo"]
