"""Compiled kernels: modules that are compiled in a child process, and functions that are kept by all their sources."""

from penstock.compiled.child import compile_kernels
from penstock.compiled.module import Compiled, compiling, plain_versions, wait_for_kernels

__all__ = ["Compiled", "compile_kernels", "compiling", "plain_versions", "wait_for_kernels"]
