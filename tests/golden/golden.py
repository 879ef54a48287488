"""Golden texts: what users read, kept word for word.

`PENSTOCK_GOLDEN=write` writes what comes instead of comparing; read the difference before keeping it.
"""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent


def normal(text):
    """The text without what differs between machines and edits: folders, and line numbers of test files."""
    text = re.sub(r"(?<![\w.])/[\w./+-]*/([\w.+-]+\.py):\d+", r"\1:LINE", text)
    text = re.sub(r"(\w+\.py):\d+", r"\1:LINE", text)
    return re.sub(r"(?<![\w.])/[\w./+-]*/([\w.+*-]+)", r"DIR/\1", text)


def assert_golden(name, text):
    path = FOLDER / f"{name}.txt"
    found = normal(text).rstrip() + "\n"
    if os.environ.get("PENSTOCK_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8") if path.exists() else ""
    assert found == wanted
