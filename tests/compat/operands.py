"""Operators and functions of a tensor of each dtype and an operand of each kind; TensorFlow's results in a file.

python -m tests.compat.operands   # with TensorFlow installed: writes operands.json again

The file has, for an expression and a dtype, a result for each operand: the dtype and the values, or null for a call
that is refused. First those of eager code, then those of a function of `map`, which are left out if they are the same.
Only Python's truth values are tried in `map` if eager code refuses them: TensorFlow takes nothing else there.
"""

import json
from pathlib import Path

EXPECTED = Path(__file__).with_name("operands.json")
VALUES = {  # `x` of each dtype
    **{name: [1, 2] for name in ("float16", "float32", "float64", "int8", "int32", "int64", "uint8")},
    "bool": [True, False],
    "string": ["a", "b"],
}
OPERANDS = """
2 | -3 | 300 | 2**40 | 2.5 | True | 1j | "a" | b"a" | np.float64(2.5) | np.float32(2.5) | np.int64(3) | np.int64(300)
| np.int64(-3) | np.uint8(3) | np.bool_(True) | np.array([2.5, 300.7]) | np.array([2, 3]) | np.array([True, False])
| np.array(2.5) | [2, 3] | [2.5, 3.5] | [2, 3.5] | (2, 3) | [True, False] | ["a", "b"] | None
| tf.constant(2) | tf.constant(2.5) | tf.constant([2, 3], tf.float64)
"""
OPERANDS = [operand.strip() for operand in OPERANDS.split("|")]
EXPRESSIONS = """
x + y | y + x | x - y | y - x | x * y | y * x | x / y | y / x | x // y | y // x | x % y | x ** y | y ** x | x & y
| y ^ x | x < y | y >= x | x == y | x != y
| tf.add(x, y) | tf.add(y, x) | tf.subtract(y, x) | tf.truediv(y, x) | tf.divide(y, x)
| tf.maximum(x, y) | tf.maximum(y, x) | tf.equal(y, x) | tf.less(y, x) | tf.pow(y, x) | tf.math.floordiv(y, x)
| tf.where([True, False], x, y) | tf.where([True, False], y, x) | tf.clip_by_value(x, y, y) | tf.clip_by_value(y, x, x)
| tf.stack([y, x]) | tf.concat([x, y], 0) | tf.logical_and(y, x)
"""
EXPRESSIONS = [expression.strip() for expression in EXPRESSIONS.split("|")]


def differs(expression, dtype, operand):
    """The reason for a result that is not TensorFlow's, or None."""
    if (dtype, operand) == ("float16", "2**40"):
        return "it is infinite, and TensorFlow's quotient of it is, too"
    if dtype in ("bool", "string") and "*" in expression:
        return "TensorFlow multiplies truth values with numbers, by way of int32, and leaves text to numpy"
    if dtype == "bool" and "np." in operand and ("/" in expression or "divide" in expression):
        return "TensorFlow leaves the division to numpy, and gives an array"
    if expression == "tf.logical_and(y, x)" and "np." in operand:
        return "in `map` TensorFlow takes numbers of numpy's for truth values"
    if expression == "tf.clip_by_value(y, x, x)":
        return "TensorFlow refuses bounds of more dimensions than the value has"
    return None


def described(value, tf):
    """A result as text."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if not tf.is_tensor(value):
        return f"{type(value).__name__}"
    array = value.numpy()
    array = array + 0 if value.dtype.is_floating else array  # where -0.0 is 0.0
    values = array.tolist() if hasattr(array, "tolist") else array
    return f"{tf.as_dtype(value.dtype).name} {values}"


def result(expression, x, operand, tf):
    """A tensor or a truth value, or None for a call that is refused."""
    import numpy as np

    names = {"tf": tf, "np": np, "x": x, "y": eval(operand, {"tf": tf, "np": np})}
    try:
        return eval(expression, names)
    except (TypeError, ValueError, NotImplementedError, tf.errors.OpError):
        return None


def tensor(dtype, tf):
    return tf.constant(VALUES[dtype], getattr(tf, dtype))


def eager(expression, dtype, tf, operands=OPERANDS):
    found = [result(expression, tensor(dtype, tf), operand, tf) for operand in operands]
    return [None if one is None else described(one, tf) for one in found]


def mapped(cases, dtype, tf):
    """The results of cases, expressions with operands, in a function of `map`."""
    taken, plain = [], {}

    def function(x):
        found = [result(expression, x, operand, tf) for expression, operand in cases]
        taken[:] = [at for at, one in enumerate(found) if tf.is_tensor(one)]
        plain.update((at, described(one, tf)) for at, one in enumerate(found) if one is not None and at not in taken)
        return tuple(found[at] for at in taken)

    data = tf.data.Dataset.from_tensors(tensor(dtype, tf))
    try:
        values = next(iter(data.map(tf.autograph.experimental.do_not_convert(function)))) if cases else ()
    except (TypeError, ValueError, tf.errors.OpError):  # when it is called, or no tensor came out
        if len(cases) == 1:
            return [plain.get(0)]
        half = len(cases) // 2
        return [*mapped(cases[:half], dtype, tf), *mapped(cases[half:], dtype, tf)]
    made = {at: described(value, tf) for at, value in zip(taken, values, strict=True)}
    return [made.get(at, plain.get(at)) for at in range(len(cases))]


def results(dtype, tf):
    """The results of all expressions with a tensor of this dtype: of eager code, and of a function of `map`."""
    cases = [(expression, operand) for expression in EXPRESSIONS for operand in OPERANDS]
    now = [one for expression in EXPRESSIONS for one in eager(expression, dtype, tf)]
    tried = [at for at, (_, operand) in enumerate(cases) if now[at] is not None or operand in ("True", "[True, False]")]
    found = dict(zip(tried, mapped([cases[at] for at in tried], dtype, tf), strict=True))
    in_map = [found.get(at) for at in range(len(cases))]
    for at, expression in enumerate(EXPRESSIONS):
        part = slice(at * len(OPERANDS), (at + 1) * len(OPERANDS))
        yield expression, now[part], in_map[part]


if __name__ == "__main__":
    import tensorflow as tf

    rows = {}
    for dtype in VALUES:
        print(dtype)
        for expression, now, in_map in results(dtype, tf):
            rows[f"{expression}, {dtype}"] = [now] if now == in_map else [now, in_map]
    EXPECTED.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n")
