"""Functions of a wide dict that hold lines which cannot be traced, as text that is read like a file."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from textwrap import indent
from typing import Any

import numpy as np

import penstock as ps

LINES = {
    "nothing": "pass",
    "an item replaced": "row['b'] = float(row['b']) * 2",
    "an item added": "row['new'] = str(row['a'])",
    "an item added, perhaps": "if row['a'] > 3:\n    row['more'] = 1",
    "an item added, either way": "if row['a'] > 3:\n    row['more'] = 1\nelse:\n    row['more'] = int(row['b'])",
    "two added, in two orders": "if row['a'] > 3:\n    row['y'] = 1\n    row['x'] = 2\nelse:\n    row['x'] = 3\n"
    "    row['y'] = int(row['b'])",
    "a branch": "if row['b'] > 0:\n    row['b'] = row['b'] * 2",
    "a branch that returns": "if row['a'] == 4:\n    return row",
    "a branch that returns less": "if row['a'] == 4:\n    return {**row, 'v': row['v'] * 0}",
    "a branch in a branch": "if row['b'] > 0:\n    if row['a'] > 2:\n        row['a'] = -row['a']\n"
    "    else:\n        row['b'] = row['b'] + 1",
    "ternary": "row['b'] = row['b'] * 2 if row['b'] > 0 else row['b']",
    "added in place": "row['a'] += 1\nrow['b'] *= 3",
    "added in place, perhaps": "if row['b'] > 0:\n    row['a'] += 1",
    "array added in place": "row['v'] = row['v'] + 0\nif row['b'] > 0:\n    row['v'] += 1",
    "array written": "row['v'] = row['v'] * 1\nif row['b'] > 0:\n    row['v'][0] = 7",
    "array that is not its own": "if row['a'] == 5:\n    row['v'][0] = 7",
    "look up": "row['a'] = NAMES[int(row['a']) % 3]",
    "look up that fails": "row['a'] = TABLE[int(row['a'])]",
    "look up, caught": "try:\n    row['a'] = TABLE[int(row['a'])]\nexcept KeyError:\n    row['a'] = np.int64(-1)",
    "caught in the midst": "try:\n    row['a'] = row['a'] + 1\n    row['b'] = np.float32(1 / (int(row['a']) - 5))\n"
    "except ZeroDivisionError:\n    row['b'] = row['b'] + row['a']",
    "text": "row['t'] = f\"{row['a']}-{row['name'].decode()}\"",
    "a check": "if not isinstance(row['b'], np.generic) or row['a'] > 90:\n    raise ValueError(row['a'])",
    "raises": "if row['a'] == 6:\n    raise ValueError(f\"row {row['a']}\")",
    "assertion": "assert row['a'] != 7, row['name']",
    "kept": "LOG.append(row['v'])",
    "the dict kept": "LOG.append(row)",
    "the dict kept, and changed": "LOG.append(row)\nif row['b'] > 0:\n    row['b'] = row['b'] + 1",
    "another name": "same = row\nif same['b'] > 0:\n    row['b'] = row['b'] - 1\nsame['a'] = int(same['a']) + 1",
    "in a tuple": "pair = (row, 1)\nif row['b'] > 0:\n    pair[0]['b'] = row['b'] - 1",
    "a copy": "old = dict(row)\nrow['a'] = int(row['a']) + 1\nrow['b'] = old['b'] if old['a'] > 2 else row['b']",
    "taken out": "label = int(row.pop('w'))\nrow['lab'] = label",
    "deleted": "if row['a'] > -1:\n    del row['w']",
    "deleted first": "del row['w']\nrow['lab'] = int(row['a'])",
    "a key that is not there": "if row['a'] == 3:\n    row['a'] = row['nowhere']",
    "a default": "row['lab'] = int(row.get('nowhere', 3)) + int(row.get('a'))",
    "update": "row.update(a=int(row['a']) * 2, z=1.5)",
    "helper": "row['a'] = helper(row['a'])",
    "helper with the dict": "row['a'] = of_row(row)",
    "helper that changes it": "changes(row)\nrow['b'] = float(row['b'])",
    "print": "print(row['a'], row['name'])",
    "loop": "total = 0\nfor key in ('a', 'b', 'w'):\n    total += float(row[key])\nrow['sum'] = total",
    "loop over an array": "total = 0.0\nfor value in row['v']:\n    if value > 0:\n        total += float(value)\n"
    "row['sum'] = total",
    "comprehension": "row['sum'] = sum([float(value) for value in row['v'] if value > row['b']])",
    "parameter of that name": "row['a'] = (lambda row: row['x'])({'x': int(row['a'])})",
    "a lambda": "row['a'] = sorted([1, 2, 3], key=lambda one: -one * int(row['a']))[0]",
    "json": "row['d'] = json.loads(row['json'])['k']",
    "json kept": "made = json.loads(row['json'])\nrow['d'], row['e'] = made['k'], made['l']",
    "nested": "if row['meta']['x'] > 2:\n    row['meta']['y'] = row['meta']['y'] * 2",
    "nested replaced": "meta = row['meta']\nrow['meta'] = {**meta, 'x': int(meta['x'])}",
    "nested kept": "LOG.append(row['meta'])\nif row['meta']['x'] > 2:\n    row['meta']['x'] = row['meta']['x'] - 9",
    "global counted": "global TOTAL\nTOTAL = TOTAL + int(row['a'])\nrow['a'] = TOTAL",
    "drawn": "if row['a'] > 3:\n    row['r'] = ps.random.uniform(())\nelse:\n    row['r'] = np.float32(row['b'])",
    "drawn by some": "row['r'] = np.float32(0)\nif row['a'] > 3:\n    row['r'] = ps.random.uniform(())",
    "drawn before": "row['r'] = ps.random.uniform(())\nrow['a'] = int(row['a'])",
    "another kind": "row['b'] = float(row['b']) if row['a'] < 4 else 'text'",
    "another shape": "if row['a'] > 3:\n    row['v'] = row['v'][:4]",
    "rebound": "if row['a'] > 3:\n    row = {**row, 'a': row['a'] * 2}",
    "rebound, and read": "old = row\nrow = {**row, 'a': int(row['a']) * 2}\n"
    "row['b'] = old['b'] if old['a'] > 3 else -old['b']",
    "named": "row['a'] = n + 1 if (n := int(row['a'])) > 3 else row['a']",
    "looked for": "if 'w' in row and row['a'] > 3:\n    row['a'] = row['a'] * 5",
    "is": "row['a'] = int(row['a'])\nrow['same'] = row['a'] is None",
    "true": "row['flag'] = bool(row['a'] > 3)\nrow['flag'] = 3 if row['flag'] is True else 4",
    "its type": "row['b'] = float(row['b'])\nrow['k'] = type(row['b']).__name__",
    "with": "with np.errstate(all='ignore'):\n    row['b'] = np.float32(float(row['b']) / float(row['a']))",
    "locals": "row['a'] = len(locals())",
    "shape set": "if row['v'].shape == (8,):\n    row['a'] = row['a'] + 1",
    "while": "while row['a'] > 3:\n    row['a'] = row['a'] - 3",
    "match": "match int(row['a']):\n    case 3:\n        row['b'] = row['b'] * 0\n    case _:\n        row['lab'] = 3",
    "chained": "row['a'] = row['w'] = int(row['a'])",
    "unpacked": "row['a'], label = int(row['w']), int(row['a'])\nrow['w'] = label",
    "number as key": "row[1] = int(row['a'])\nrow[True] = row[1] + 1",
}
ENDS = {
    "the dict": "return row\n",
    "display": "return {**row, 'v': row['v'] * 2}\n",
    "display with a line": "return {**row, 'lab': float(row['b']), 'v': row['v'] + 1}\n",
    "dict": "return dict(row, lab=int(row['a']))\n",
    "some": "return {key: row[key] for key in ('a', 'v', 'name')}\n",
    "all but one": "return {key: value for key, value in row.items() if key != 'w'}\n",
    "a pair": "return row, int(row['a'])\n",
    "a pair of them": "return row['v'] * 2, (row['a'], int(row['w']))\n",
    "a number": "return float(row['b']) + len(row)\n",
    "twice": "return {**row, 'again': row['v'], 'view': row['v'][::-1]}\n",
    "a verdict": "return int(row['a']) % 3 != 1\n",
    "a verdict of one": "return bool(row['b'] > 0)\n",
    "None": "return None\n",
}
AROUND = """\
LOG, NAMES, TABLE, TOTAL = [], [1, 2, 3], {0: 5, 1: 6, 2: 7, 3: 8, 4: 9}, 0
def helper(value):
    return int(value) if isinstance(value, np.generic) else value
def of_row(row):
    return int(row['a']) + len(row)
def changes(row):
    if row['a'] > 3:
        row['b'] = row['b'] * 5
"""


def made(lines: tuple[str, ...], end: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function of its own, and the names that it sees."""
    body = "".join(f"{LINES[line]}\n" for line in lines) + ENDS[end]
    if "global TOTAL" in body:
        body = "global TOTAL\n" + body.replace("global TOTAL\n", "")
    text = f"{AROUND}def function(row):\n{indent(body, '    ')}"
    file = f"<{lines}, {end}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"np": np, "ps": ps, "json": __import__("json")}
    exec(compile(text, file, "exec"), names)
    return names["function"], names


def rows() -> ps.Dataset:
    rng = np.random.default_rng(0)
    count = 13
    columns: dict[str, Any] = {
        "a": np.arange(count) % 9,
        "b": rng.normal(size=count).astype(np.float32),
        "name": [f"n{i % 4}".encode() for i in range(count)],
        "json": [b'{"k": %d, "l": "%d"}' % (i, i * i) for i in range(count)],
        "v": rng.normal(size=(count, 8)).astype(np.float32),
        "m": rng.normal(size=(count, 2, 3)),
        "u": rng.integers(0, 255, (count, 4), np.uint8),
        "w": np.arange(count, dtype=np.int32),
        "meta": {"x": np.arange(count), "y": rng.normal(size=(count, 2))},
    }
    return ps.Dataset.from_tensor_slices(columns)
