"""A tensor takes the operands that TensorFlow's takes, with the same results: TensorFlow has written the table."""

import json
import re

import numpy as np
import pytest
from tests.compat.operands import EXPECTED, EXPRESSIONS, OPERANDS, VALUES, described, differs, eager, tensor

from penstock.compat import tf
from penstock.compat.operands import reading

STORED = json.loads(EXPECTED.read_text())
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def unequal(expression, dtype, found, expected):
    rows = zip(OPERANDS, found, expected, strict=True)
    return [row for row in rows if row[1] != row[2] and not differs(expression, dtype, row[0])]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_operands_are_taken_as_in_tensorflow(expression):
    for dtype in VALUES:
        stored = STORED[f"{expression}, {dtype}"]
        assert unequal(expression, dtype, eager(expression, dtype, tf), stored[0]) == []
        with reading(None):
            assert unequal(expression, dtype, eager(expression, dtype, tf), stored[-1]) == []


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_graph_over_blocks_gives_the_same(expression):
    for dtype in VALUES:
        rows = zip(OPERANDS, STORED[f"{expression}, {dtype}"][-1], strict=True)
        cases = [
            (operand, expected)
            for operand, expected in rows
            if expected not in (None, "True", "False") and not differs(expression, dtype, operand)
        ]
        if cases:
            calls = [re.sub(r"\by\b", lambda _, operand=operand: f"({operand})", expression) for operand, _ in cases]
            function = eval(f"lambda x: ({', '.join(calls)},)", {"tf": tf, "np": np})
            ds = tf.data.Dataset.from_tensors(tensor(dtype, tf)).map(function)
            found = [described(value, tf) for value in next(iter(ds))]
            assert list(zip(calls, found, strict=True)) == list(zip(calls, (row[1] for row in cases), strict=True))
            assert "per element" not in str(ds.explain())
