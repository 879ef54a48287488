"""Tables of methods: those that only compute, those that change their object, those that read files."""

from __future__ import annotations

import array
import datetime as dt
import re
import struct
from collections import Counter, OrderedDict, deque
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np

from penstock.functions.code import words
from penstock.functions.objects import MAPPINGS
from penstock.functions.tokenisers import ATTRIBUTES

VERBS = {
    **dict.fromkeys(("append", "appendleft"), "appends to"),
    **dict.fromkeys(("pop", "popitem", "popleft", "remove", "discard"), "takes from"),
    **dict.fromkeys(("extend", "extendleft"), "extends"),
    "insert": "inserts into",
    "add": "adds to",
    "update": "updates",
    "setdefault": "may add to",
    "clear": "clears",
    "sort": "sorts",
    "reverse": "reverses",
    "fill": "fills",
}
# Methods that store their arguments in their object
STORING = words(
    "append appendleft extend extendleft insert add update setdefault put __setitem__ __init__ __iadd__ __ior__"
)
_DUNDERS = words(
    """__setattr__ __delattr__ __delitem__ __setstate__ __isub__ __imul__ __iand__ __ixor__ __itruediv__ __ifloordiv__
    __imod__ __ipow__ __ilshift__ __irshift__ __imatmul__"""
)
WRITERS = STORING | _DUNDERS | {*VERBS} | words(
    "partition itemset resize setflags setfield byteswap paste thumbnail putpixel putdata putalpha write writelines"
)  # fmt: skip
VIEWS = words("reshape ravel view squeeze transpose swapaxes diagonal T flat real imag base data flags")
_OF_LISTS = words("index count copy __getitem__ __contains__ __len__ __iter__")
_OF_MAPPINGS = words("get keys values items copy most_common elements total __contains__ __len__ __iter__")
_OF_SETS = words("union intersection difference symmetric_difference issubset issuperset isdisjoint copy __contains__")
READERS: dict[Any, frozenset[str]] = {  # methods that only read an outer object, by its class
    **dict.fromkeys((list, tuple, deque), _OF_LISTS),
    **dict.fromkeys(MAPPINGS, _OF_MAPPINGS),
    **dict.fromkeys((set, frozenset), _OF_SETS),
    bytearray: frozenset(dir(bytes)),
}
# Methods that only read their first argument
TAKING = (
    _OF_LISTS | _OF_SETS | words("join dot searchsorted startswith endswith get format translate sub subn take choose")
)
# Methods that read files, the clock or settings
LOOKING = words(
    """read read1 readline readlines readinto read_bytes read_text exists is_file is_dir stat iterdir glob rglob resolve
    open close seek tell readframes getnframes getframerate getsampwidth getnchannels astimezone strftime strptime
    timestamp ctime fromtimestamp writerow writerows"""
)
# Methods and attributes of known classes of Python and numpy, and of images, that only compute
METHODS = frozenset(
    name
    for kind in (
        str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, slice, range, np.ndarray,
        np.generic, deque, Counter, OrderedDict, dt.datetime, dt.timedelta, re.Pattern, re.Match,
        PurePath, Fraction, array.array, struct.Struct,
    )
    for name in dir(kind)
) - LOOKING - words(
    """__reduce__ __reduce_ex__ __init_subclass__ __subclasshook__ __dict__ __class__ tofile dump fromfile now today
    utcnow"""
) | ATTRIBUTES | words(
    """digest hexdigest block_size digest_size most_common elements total value getvalue convert crop resize rotate mode
    width height args thumbnail getpixel putpixel paste getbbox getdata point filter find findall findtext iter text
    tag attrib tail normal integers random uniform choice permutation standard_normal randint rand randn randrange
    gauss betavariate random_sample exponential poisson binomial beta gamma shuffle permuted sample choices bytes numpy
    get_shape as_list"""
)  # fmt: skip
KNOWN_METHODS = (METHODS - WRITERS) | words("encode decode compress decompress tokenize")  # methods of library objects
