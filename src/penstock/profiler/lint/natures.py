"""Classification of users' functions: random, expensive, plain numpy."""

from __future__ import annotations

import builtins
import os
import random
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from penstock.functions.code import words
from penstock.functions.facts import why_visible
from penstock.functions.generators import generators
from penstock.functions.ownership import is_penstocks, is_users, is_users_path
from penstock.functions.uses import ELSEWHERE, Use, attribute, branches, keeps_state, loops, uses
from penstock.trace.lift import draws, nature_of

_LIBRARIES = {
    **dict.fromkeys(["cv2", "PIL", "imageio", "skimage", "simplejpeg", "turbojpeg", "tifffile"], "works on images"),
    **dict.fromkeys(["librosa", "soundfile", "torchaudio", "av", "decord"], "decodes sound or video"),
    **dict.fromkeys(["zlib", "gzip", "bz2", "lzma", "zstandard"], "compresses or decompresses"),
    **dict.fromkeys(ELSEWHERE, "waits for another machine"),
    **dict.fromkeys(["h5py", "pydicom", "nibabel", "rasterio"], "reads files"),
}
_READS = (".read_bytes", ".read_text")
_REDUCTIONS = (".sum", ".mean", ".std", ".var", ".min", ".max", ".argmax", ".argmin", ".any", ".all", ".prod")
_METHODS = (*_REDUCTIONS, ".astype", ".clip", ".round", ".cumsum", ".shape", ".dtype", ".ndim", ".real", ".imag")
_NUMBERS = (abs, min, max, float, int, bool, round)
# numpy functions that only compute: lint calls functions that use only these, with its own values. The list excludes
# functions that write to files or arguments, configure numpy, use random numbers, return uninitialised memory, or call
# their arguments.
_NUMPY = words(
    """
    abs absolute all allclose amax amin angle any append arange argmax argmin argpartition argsort argwhere around array
    array_equal array_split asarray asanyarray ascontiguousarray atleast_1d atleast_2d atleast_3d average bartlett
    bincount blackman broadcast_arrays broadcast_to choose clip column_stack compress concatenate convolve copy corrcoef
    correlate count_nonzero cov cross cumprod cumsum delete diag diagflat diagonal diff digitize dot dsplit dstack dtype
    ediff1d einsum expand_dims extract eye finfo fix flatnonzero flip fliplr flipud full full_like geomspace gradient
    hamming hanning histogram histogram2d histogramdd hsplit hstack hypot identity iinfo imag in1d indices inner insert
    interp intersect1d isclose iscomplex isin isneginf isposinf isreal ix_ kaiser kron lexsort linspace logspace max
    maximum mean median meshgrid min minimum moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean
    nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndim nonzero ones ones_like outer packbits
    pad partition percentile polyfit polyval prod ptp quantile ravel ravel_multi_index real real_if_close repeat reshape
    result_type roll rollaxis rot90 round searchsorted select setdiff1d setxor1d shape sinc size sort split squeeze
    stack std sum swapaxes take take_along_axis tensordot tile trace transpose trapezoid trapz tri tril tril_indices
    trim_zeros triu triu_indices union1d unique unpackbits unravel_index unwrap vander var vdot vsplit vstack where
    zeros zeros_like"""
)
_NUMPY_MODULES = ("numpy.linalg", "numpy.fft")  # all functions of these modules only compute
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
_SETTERS = ("seed", "getstate", "setstate", "get_state", "set_state")


def randomness(function: Callable[..., Any]) -> str | None:
    """Return the name of a changing source that a function uses (random numbers, the clock), or None.

    A generator that the function seeds itself is the same in every epoch and does not count.
    """
    found = [*filter(_is_random, uses(function)), *generators(function).values()]
    return found[0].spelled if found else None


def _is_random(use: Use) -> bool:
    generators = (*_GENERATORS, np.random.BitGenerator)
    value = use.value
    if isinstance(value, generators) or is_torchs(value):
        return True
    if isinstance(value, type) and issubclass(value, generators):
        return use.bare
    if value is np.random.default_rng:
        return use.bare
    if any(value is known for known in (os.urandom, uuid.uuid1, uuid.uuid4)):
        return True
    name = _name(value)
    if isinstance(attribute(value, "__self__"), generators):
        return name not in _SETTERS
    if isinstance(value, BuiltinFunctionType) and value in (time.time, time.time_ns, datetime.now, datetime.today):
        return True
    return draws_by_key(use) or _module(value) == "secrets"


def draws_by_key(use: Use) -> bool:
    """Return True if a use derives random numbers from the element's key, so that they differ between epochs."""
    return is_penstocks(use.value) and (_name(use.value) == "element_key" or draws(use.value))


def draws_by_itself(use: Use) -> bool:
    """Return True if a use reads a generator that is not seeded per element. A clock does not count."""
    value = use.value
    if not _is_random(use) or is_penstocks(value):
        return False
    drawing = (
        isinstance(value, _GENERATORS) or isinstance(attribute(value, "__self__"), _GENERATORS) or is_torchs(value)
    )
    return (drawing or _module(value) == "secrets") and _name(value) not in _SETTERS


def is_torchs(value: Any) -> bool:
    """Return True for a generator of torch, which functions receive as `generator=`."""
    return _module(type(value)) == "torch._C" and _name(type(value)) == "Generator"


def _name(value: Any) -> str:
    return _text(value, "__name__")


def _module(value: Any) -> str:
    return _text(value, "__module__")


def _text(value: Any, name: str) -> str:
    found = attribute(value, name)
    return found if isinstance(found, str) else ""


def work(function: Callable[..., Any]) -> tuple[str, str] | None:
    """Return the expensive work of a function without the GIL, and the called name; None if there is none known."""
    for use in uses(function):
        found = _work(use)
        if found is not None:
            return found, use.spelled.removeprefix(".")
    return None


def _work(use: Use) -> str | None:
    value = use.value
    if value is None:
        return "reads files" if use.spelled in _READS else None
    if value is builtins.open or value is np.load or value is np.fromfile:
        return "reads files"
    name = _name(value)
    module = name if isinstance(value, ModuleType) else _module(value)
    if is_penstocks(value):
        return nature_of(value).work or None
    found = _LIBRARIES.get(module.partition(".")[0])
    return None if found is None or is_users_path(module) else found


def decodes(function: Callable[..., Any]) -> str | None:
    """Return the name of the image decoder that a function uses, or None."""
    for use in uses(function):
        if nature_of(use.value).decodes:
            return use.spelled
        if use.spelled.endswith(("cv2.imdecode", "cv2.imread", "Image.open", "imageio.imread")):
            return use.spelled
    return None


def only_numpy(function: Callable[..., Any]) -> bool:
    """Return True if a function is numpy arithmetic without loops or branches, so that it could work on many elements.

    It has no side effects: all used functions are known to only compute, and it writes to nothing.
    """
    if loops(function) or branches(function) or keeps_state(function):
        return False
    return all(_is_numpy(use) for use in uses(function)) and why_visible(function) is None


def _is_numpy(use: Use) -> bool:
    value = use.value
    if value is None:
        return use.spelled in _METHODS
    if isinstance(value, (bool, int, float, complex, np.generic, np.ndarray, np.dtype)):
        return True
    if isinstance(value, ModuleType):
        return False
    if isinstance(value, np.ufunc) or (isinstance(value, type) and issubclass(value, np.generic)):
        return True
    if _module(value) in _NUMPY_MODULES and not is_users(value):
        return True
    return any(value is known for known in (*_NUMBERS, *(getattr(np, name, None) for name in _NUMPY)))
