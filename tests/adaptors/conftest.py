"""Modules that need a framework are not looked into where it is missing."""

import importlib.util

NEEDS = {
    "loader_checks.py": "torch",
    "torch_data_sets.py": "torch",
    "vision_compositions.py": "torchvision",
    "vision_data.py": "torchvision",
}
collect_ignore = [name for name, library in NEEDS.items() if not importlib.util.find_spec(library)]
