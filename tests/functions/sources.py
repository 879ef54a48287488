"""Functions from text, whose source can be read as that of a file."""

import itertools
import linecache

_NUMBERS = itertools.count()


def executed(text, names=None):
    """Run a text as a module of its own would be run; return its names."""
    names = {"__name__": "__main__"} if names is None else names
    file = f"/sources/module_{next(_NUMBERS)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return names
