"""The tree of a function is found if it belongs to the code of the function, and only then."""

import argparse
import ast
import json.decoder
import linecache
import textwrap
from types import FunctionType

import pytest

from penstock.functions.definition import definition
from penstock.physical import transform


def functions_of(module):
    for value in vars(module).values():
        inside = vars(value).values() if isinstance(value, type) else [value]
        for item in inside:
            item = getattr(item, "__func__", item)
            own = isinstance(item, FunctionType) and item.__module__ == module.__name__
            if own and not item.__code__.co_filename.startswith("<"):
                yield item


@pytest.mark.parametrize("module", [argparse, json.decoder, textwrap, transform, linecache])
def test_whatever_stands_in_a_file_is_found(module):
    functions = list(functions_of(module))
    assert functions
    assert [function for function in functions if definition(function) is None] == []


def test_of_several_on_one_line_it_is_the_right_one():
    first, second = (lambda x: x + 1), (lambda x: x + 1)
    one, two = definition(first), definition(second)
    assert one is not None
    assert two is not None
    assert one.node.col_offset < two.node.col_offset
    assert ast.unparse(one.node) == "lambda x: x + 1"


def test_a_file_that_has_changed_says_nothing(monkeypatch):
    file = "<changed>"
    names = {}
    exec(compile("def function(x):\n    return x + 1\n", file, "exec"), names)
    now = "def function(x):\n    return x + 2\n"
    monkeypatch.setitem(linecache.cache, file, (len(now), None, now.splitlines(keepends=True), file))
    assert definition(names["function"]) is None
    monkeypatch.setitem(linecache.cache, file, (1, None, ["def broken("], file))
    assert definition(names["function"]) is None
    monkeypatch.delitem(linecache.cache, file)
    assert definition(names["function"]) is None
