"""penstock.compat.tf: the expressions of tests/compat in both libraries: values, dtypes, shapes, and refusals."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from _parity.check import Check, Comparer
from penstock.compat import tf as ours

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.compat.expressions import EXACT, described, evaluated
from tests.compat.operands import OPERANDS, VALUES, differs, results

# Wrong calls, which both libraries must refuse.
REFUSED = r"""
tf.reshape([1, 2, 3], [2, 2])
tf.concat([[1, 2], [[3]]], 0)
tf.stack([[1, 2], [3]])
tf.gather([1, 2], 5)
tf.pad([1, 2], [[1, 1], [1, 1]])
tf.squeeze([[1, 2]], axis=[1])
tf.expand_dims([1], 5)
tf.transpose([[1, 2]], perm=[0, 0])
tf.cast("a", tf.int32)
tf.strings.to_number("a")
tf.constant([1, 2]) + tf.constant([1, 2, 3])
tf.io.parse_tensor(b"no proto", tf.int32)
tf.io.decode_raw(b"abc", tf.int32)
tf.io.decode_csv("1,2", [[0]])
tf.io.decode_jpeg(b"no image")
tf.image.random_crop(np.zeros((2, 2, 3), np.uint8), [4, 4, 3])
tf.slice([1, 2, 3], [2], [5])
tf.split([1, 2, 3], 2)
tf.one_hot([0.5], 2)
tf.debugging.assert_equal(1, 2)
tf.constant(1) + tf.constant(1.0)
tf.constant(1) + 1.5
tf.bitwise.bitwise_and(True, False)
tf.bitwise.invert(tf.constant([True]))
""".strip().splitlines()


def _values(compare: Comparer) -> None:
    for expression in EXACT:
        compare.same(expression, json.dumps(evaluated(expression, ours)), json.dumps(evaluated(expression, tf)))


def _operands(compare: Comparer) -> None:
    for dtype in VALUES:
        for (expression, *rows), (_, *expected) in zip(results(dtype, ours), results(dtype, tf), strict=True):
            for place, found, other in zip(("eager", "map"), rows, expected, strict=True):
                known = [differs(expression, dtype, operand) for operand in OPERANDS]
                kept = [[None if why else one for one, why in zip(row, known, strict=True)] for row in (found, other)]
                compare.same(f"{expression}, {dtype}, {place}", *map(json.dumps, kept))


def _refusals(compare: Comparer) -> None:
    for expression in REFUSED:
        compare.count += 1
        accepting = [
            name for name, module in (("penstock", ours), ("tensorflow", tf)) if not _refuses(expression, module)
        ]
        if accepting:
            compare.differs(f"{expression}: accepted by {' and '.join(accepting)}")


def _refuses(expression: str, module: Any) -> bool:
    try:
        evaluated(expression, module)
    except Exception:  # any kind of error: the check compares only that the call is refused
        return True
    return False


PIECES = [b"", b" ", b"\t", b"\x1c", b"a", b"B", b"9", b",", b".", "é".encode(), "¿".encode(), b"\xff", b"\x80", b"\n"]
PATTERNS = [
    "a",
    ".",
    "[¿a]+",
    "[[:punct:]]",
    r"\p{L}",
    r"\p{N}|B",
    "a*",
    "^",
    "$",
    r"\b",
    r"(a)|(B)",
    r"\Ba",
    "(?i)b+",
    r"\x{e9}?",
]
TEXTS = r"""
tf.strings.regex_replace(T, P, r"<\0>")
tf.strings.regex_replace(T, P, "", replace_global=False)
tf.strings.regex_full_match(T, P)
tf.strings.lower(T)
tf.strings.upper(T)
tf.strings.lower(T, encoding="utf-8")
tf.strings.strip(T)
tf.strings.length(T)
tf.strings.length(T, unit="UTF8_CHAR")
tf.strings.substr(T, 0, 3)
tf.strings.substr(T, 0, 3, unit="UTF8_CHAR")
tf.strings.substr(T[:1], -1, 1, unit="UTF8_CHAR")
tf.strings.split(T)
tf.strings.split(T, maxsplit=2)
tf.strings.split(T, maxsplit=0)
tf.strings.split(T[0], maxsplit=1)
tf.strings.split(T, ",")
tf.strings.split(T, "a", maxsplit=1)
tf.strings.join([T, "x", T], "-")
tf.strings.to_hash_bucket_fast(T, 2**40)
tf.strings.to_hash_bucket(T, 2**40)
""".strip().splitlines()


def _texts(compare: Comparer) -> None:
    rng = random.Random(5)
    for pattern in PATTERNS:
        texts = [b"a", *(b"".join(rng.choices(PIECES, k=rng.randint(0, 8))) for _ in range(40))]
        for expression in TEXTS:
            ours_now, theirs = (_described(expression, module, texts, pattern) for module in (ours, tf))
            compare.same(f"{expression} with {pattern!r}", ours_now, theirs)


def _described(expression: str, module: Any, texts: list[bytes], pattern: str) -> str:
    names = {"tf": module, "T": module.constant(texts), "P": pattern}
    return json.dumps(described(eval(expression, names), module))


CHECKS = [
    Check("compat: values", _values),
    Check("compat: operands", _operands),
    Check("compat: refusals", _refusals),
    Check("compat: texts", _texts),
]
