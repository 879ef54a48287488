"""Golden texts: what users read, kept word for word, in one table for each file of tests.

`PENSTOCK_GOLDEN=write` writes what comes instead of comparing; read the difference before keeping it.

A table lies under the name of the tests that hold it (`tests/io/test_example.py`: `golden/io/example.txt`). In it
`==== name` stands above each text; the names are in alphabetical order, and a text ends without empty lines.
"""

import os
import re
import sys
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
_HEAD = "==== "


def normal(text):
    """The text without what differs between machines and edits: folders, and line numbers of test files."""
    text = re.sub(r"(?<![\w.])/[\w./+-]*/([\w.+-]+\.py):\d+", r"\1:LINE", text)
    text = re.sub(r"(\w+\.py):\d+", r"\1:LINE", text)
    return re.sub(r"(?<![\w.])/[\w./+-]*/([\w.+*-]+)", r"DIR/\1", text)


def assert_golden(name, text):
    """`text` is what the table of the calling file says under `name`."""
    caller = Path(sys._getframe(1).f_code.co_filename).resolve().relative_to(TESTS)
    table = TESTS / "golden" / caller.with_name(caller.name.removeprefix("test_")).with_suffix(".txt")
    found = normal(text).rstrip()
    assert not re.search(f"^{_HEAD}", found, re.MULTILINE)
    if os.environ.get("PENSTOCK_GOLDEN") == "write":
        _write(table, name, found)
    else:
        assert found == _read(table).get(name, "")


def said(error):
    """What a user reads of an error: its class, its text and its notes."""
    return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def assert_in_page(page, name, text):
    """`text` is what a page of the repository has between `<!-- begin: name -->` and `<!-- end: name -->`."""
    path = TESTS.parent / page
    before, begin, rest = path.read_text(encoding="utf-8").partition(f"<!-- begin: {name} -->\n")
    old, end, after = rest.partition(f"\n<!-- end: {name} -->")
    assert end, f"{page} has no place for {name}."
    if os.environ.get("PENSTOCK_GOLDEN") == "write":
        path.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")
    else:
        assert old == text


@cache
def _read(table):
    return parsed(table.read_text(encoding="utf-8")) if table.exists() else {}


def parsed(text):
    """The texts of a table by their names."""
    parts = re.split(f"^{_HEAD}(.*)\n", text, flags=re.MULTILINE)[1:]
    return {name: body.rstrip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def printed(texts):
    """A table of texts by their names."""
    return "\n".join(f"{_HEAD}{name}\n{texts[name]}\n" for name in sorted(texts))


def _write(table, name, text):
    import fcntl  # which not every system has

    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # tests run in several processes
        file.seek(0)
        whole = printed({**parsed(file.read()), name: text})
        file.truncate(0)
        file.write(whole)
