"""Functions that may move give the same results in a process with another hash seed and other addresses."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from tests.functions import sources

from penstock.functions.shipping import why_not_shippable

SETS = """
{*x.split()}
set(x.split())
frozenset(x.split())
{word for word in x.split()}
{'a', 'b', x}
STOP
NAMED['stop']
OBJECT.stop
OBJECT.always
Tokens.always
dict.fromkeys(x.split()).keys() | {'z': 1}.keys()
dict.fromkeys(x.split()).keys() - {'z': 1}.keys()
STOP | {x}
(STOP, 1)[0]
STOP.union(x.split())
copy.copy(STOP)
made(x)
(lambda: {*x.split()})()
functools.reduce(lambda a, b: a | b, [STOP, {x}])
[{x, 'a', 'b'}][0]
pickle.loads(pickle.dumps(STOP))
operator.or_(STOP, {x})
next(iter([STOP]))
""".strip().splitlines()
USES = """
len(s)
sorted(s)
'a' in s
[word for word in x.split() if word in s]
max(s)
any(s)
s == {'a'}
[*s][0]
(*s,)[0]
list(s)
tuple(s)
first(*s)
next(iter(s))
set(s).pop()
[s.copy() if isinstance(s, set) else {*s}][0].pop()
list(dict.fromkeys(s))
list(dict.fromkeys(s, 1).items())
str(s)
repr(s)
f'{s}'
f'{s!r}'
'%s' % (s,)
'{}'.format(s)
','.join(s)
[word for word in s]
[word for word in map(str.upper, s)]
list(zip(s, range(9)))
extended(s)
added(s)
sliced(s)
unpacked(s)
starred(s)
sorted(s, key=len)
max(s, key=len)
max(set(x), key=x.count)
[y for y in [s]][0].__iter__().__next__()
json.dumps(s, default=list)
np.array(list(s)).tolist()
np.array([*s]).tolist()
list(enumerate(s))
[first(*s) for s in [s]]
functools.reduce(operator.add, s)
list(itertools.chain(s))
collections.Counter(s).most_common(1)
collections.deque(s)[0]
''.join(word for word in s)
list(filter(None, s))
[w for s in [s, s] for w in s]
NAMED.get('x', s) and [*s]
extends(s)
""".strip().splitlines()
OTHERS = """
str(object())
repr(object())
f'{object()}'
hash(x)
x.__hash__()
id(x)
str.__hash__(x)
hash((x, 1))
sorted([x, 'b'], key=hash)
list(map(hash, [x]))
str(Plain())
f'{Plain()}'
'%s' % Plain()
'{}'.format(Plain())
str([Plain()])
repr(Plain())
Plain().__repr__()
OBJECT.__hash__()
f'{OBJECT}'
str(OBJECT)
x.upper()
f'{x}!'
str(len(x))
json.dumps({'x': x})
""".strip().splitlines()
HEAD = """
import collections, copy, functools, itertools, json, operator, pickle, sys
import numpy as np

STOP = {'a', 'bb', 'c', 'dd'}
NAMED = {'stop': frozenset(STOP)}

class Tokens:
    always = frozenset(STOP)
    def __init__(self): self.stop = set(STOP)

class Plain: pass

OBJECT = Tokens()

def made(x): return {*x.split()}
def first(*words): return words[0]
def extended(s):
    found = []
    found.extend(s)
    return found
def extends(s): return list.extend(found := [], s) or found
def added(s):
    found = []
    found += s
    return found
def sliced(s):
    found = [0]
    found[:] = s
    return found
def unpacked(s):
    one, *_ = s
    return one
def starred(s): return [*s, *s]
"""
CHILD = """
x, found = "the quick brown fox jumps over lazy dogs", []
for name in json.loads(sys.stdin.read()):
    try:
        given = globals()[name](x)
        found.append(repr(sorted(given)) if isinstance(given, (set, frozenset)) else repr(given))
    except Exception as error:
        found.append(type(error).__name__)
print(json.dumps(found))
"""


def programs():
    pairs = [(made, use) for at, made in enumerate(SETS) for place, use in enumerate(USES) if (at + place) % 3 == 0]
    bodies = [f"s = {made}\nreturn {use}" for made, use in pairs]
    return {f"function_{place}": body for place, body in enumerate(bodies + [f"return {other}" for other in OTHERS])}


@pytest.fixture(scope="module")
def source():
    found = (f"def {name}(x):\n{textwrap.indent(body, '    ')}\n" for name, body in programs().items())
    return HEAD + "".join(found)


def results(source, names, seed):
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", source + CHILD],
        input=json.dumps(names),
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_what_may_move_gives_the_same_results_in_any_process(source):
    names = sources.executed(source)
    movable = [name for name in programs() if why_not_shippable(names[name]) is None]
    one, other = results(source, movable, 1), results(source, movable, 2)
    differ = [programs()[name] for name, first, second in zip(movable, one, other, strict=True) if first != second]
    assert differ == []
    assert len(movable) > 30


def test_functions_for_which_the_order_means_nothing_move(source):
    names = sources.executed(source)
    wanted = [f"s = {made}\nreturn {use}" for made in ("STOP", "{*x.split()}", "OBJECT.stop") for use in USES[:3]]
    wanted += [
        "return [word for word in x.split() if word in STOP and word not in OBJECT.always]",
        "return x.upper()",
        "return f'{x}!'",
    ]
    for body in wanted:
        sources.executed(f"def function(x):\n{textwrap.indent(body, '    ')}", names)
        assert why_not_shippable(names["function"]) is None, body
