"""Functions that change objects from outside under other names stay; functions that only look the same move."""

import textwrap

import pytest
from tests.functions import sources

from penstock.functions.shipping import why_not_shippable

HEAD = """
import collections, dataclasses, enum, functools, itertools, operator, pathlib, random, re
import numpy as np

seen, rows, table, array = [], [[1], [2]], {'a': [1]}, np.zeros(4)
raw, stepping = bytearray(4), slice(0, 1)

class Rows(collections.UserList): pass
class Counting:
    n = 0
    @property
    def p(self): self.n += 1
class Strange(enum.Enum):
    A = 1
    @classmethod
    def _missing_(cls, value): seen.append(value)
@dataclasses.dataclass
class Made:
    a: object
    def __new__(cls, a): seen.append(a); return object.__new__(cls)
@dataclasses.dataclass
class Filled:
    a: object = dataclasses.field(default_factory=random.random)
class Odd(ValueError): pass

LISTS, COUNTING = Rows([[1]]), Counting()
@functools.lru_cache
def remembered(): return []
def one(n): return seen if n else other(n)
def other(n): return one(n)

def f(x):
"""
STAY = r"""
rows[:][0].append(x)
rows[stepping][0].append(x)
s = slice(0, 1); rows[s][0].append(x)
rows[np.s_[0:1]][0].append(x)
a, *b = rows; b[0].append(x)
for k, v in table.items(): v += [x]
for row, n in zip(rows, x): row.append(n)
next(itertools.repeat(seen)).append(x)
max([], default=seen).append(x)
{}.setdefault('a', seen).append(x)
list(itertools.zip_longest([1], [], fillvalue=seen))[0][1].append(x)
dict.fromkeys(x, seen)['a'].append(1)
fs = [lambda l: l.append(x)]; g = len if x else fs[0]; g(seen)
fs = [lambda l: l.append(x)]; list(map(fs[0], rows))
list(map(functools.partial(lambda l: l.append(x)), rows))
sorted(rows, key=functools.cmp_to_key(lambda a, b: a.append(1) or 0))
functools.reduce(lambda a, b: a.append(1) or a, rows)
g = lambda *a: a[0].append(x); g(seen)
g = lambda l, by=seen: by.append(l); g(x)
one(1); other(1).append(x)
remembered().append(x)
LISTS.append(x)
for row in LISTS: row.append(x)
hasattr(COUNTING, 'p')
'{0.p}'.format(COUNTING)
Strange(x)
Made(x)
Filled()
pathlib.Path(x).replace('b')
list(map(pathlib.Path(x).replace, ['b']))
open(*('file', 'w'))
np.load('file', mmap_mode='r+')
array.flags.writeable = False
np.frombuffer(raw, np.uint8)[0] = x
np.random.default_rng(seed=None).random()
s = None if x else 1; return np.random.default_rng(s).random()
try: raise ValueError(seen)\nexcept ValueError as e: e.args[0].append(x)
""".strip().splitlines()
MOVE = r"""
g = lambda a, by: a * by; return g(x, array)
return sorted(rows, key=functools.cmp_to_key(lambda a, b: a[0] - b[0]))
return functools.reduce(lambda a, b: a + b, rows)
return x.replace('a', 'b').replace('b', 'c', 1)
text = re.sub('a', lambda found: found.group().upper(), x); text += 'b'; return text
best = None\nfor i in x: best = i if best is None or i > best else best\nreturn best
found = iter(x); return next(found), next(found, None)
if x < 0: raise Odd('less than 0')
total = 0\nfor i in range(2): total += rows[i][0]\nreturn total
return np.random.default_rng(int(x)).random()
ys, xs = np.mgrid[0:4, 0:x]; return ys + np.r_[1, xs] + np.ogrid[0:3]
""".strip().splitlines()


def verdict(body):
    text = HEAD + textwrap.indent(body.replace("\\n", "\n"), "    ")
    return why_not_shippable(sources.executed(text)["f"])


@pytest.mark.parametrize("body", STAY)
def test_what_may_change_something_stays(body):
    assert verdict(body) is not None


@pytest.mark.parametrize("body", MOVE)
def test_what_only_computes_moves(body):
    assert verdict(body) is None
