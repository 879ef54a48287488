"""Texts for messages: hints for exceptions of users' functions, URLs without secrets, numbers of bytes.

A hint explains the probable cause of an exception. It is added as a note; type, text and traceback stay as they are.
"""

from __future__ import annotations

import re  # patterns are compiled when an exception needs them
import warnings
from typing import Any

TEXT = 'Text is bytes here, as in tf.data: write b"…" in place of "…", or decode it first with .decode().'
_BYTES = r"\bbytes\b"
_STR = r"\bstr\b|\bstrings?\b"
WINDOW = (
    "A window is a data set of its elements, and no array: .flat_map(lambda window: window.batch(n)) makes an array of "
    "each, window.map(function) calls a function for each of its elements."
)
_DATA_SET = r"unsupported operand type\(s\) .*'Dataset'|not supported between instances of .*'Dataset'|: 'Dataset'$"
_NAMED_PART = r"^tuple indices must be integers or slices, not str$"
_NAMED_ITEM = r"^only integers, slices|^invalid index to scalar variable"
_NUMPY = "Values are numpy's already: "
_ATTRIBUTES = {  # of TensorFlow's and torch's tensors
    "numpy": "leave out .numpy().",
    "eval": "leave out .eval().",
    "cpu": "leave out .cpu().",
    "detach": "leave out .detach().",
    "contiguous": "leave out .contiguous(), or write np.ascontiguousarray(x).",
    "get_shape": "write x.shape, a tuple.",
    "as_list": "x.shape is a tuple: list(x.shape).",
    "set_shape": "leave out .set_shape(): shapes are those of the values. x.reshape(shape) changes one.",
    "permute": "write x.transpose(axes).",
    "unsqueeze": "write np.expand_dims(x, axis).",
    "float": "write x.astype(np.float32).",
    "double": "write x.astype(np.float64).",
    "long": "write x.astype(np.int64).",
    "int": "write x.astype(np.int32).",
    "to": "write x.astype(dtype); the loop's framework moves batches to a device.",
    "numel": "write x.size.",
    "ref": "an array has no name; use id(x).",
}
_COUNTED = r"takes .*arguments?\b.* given\b|missing (\d+ )?required .*argument|expected .*\barguments?, got \d"
_READ_ONLY = r"(destination|array|buffer) is read-only"
_NOT_FOUND = r"^b['\"].*is not in (list|deque)$"
_MOST_KEYS = 20
NO_ELEMENT = object()


def hint_for(raised: BaseException, element: Any = NO_ELEMENT) -> str | None:
    """Return a hint about an exception that a function raised for `element`, or None.

    >>> hint_for(TypeError("can't concat str to bytes")) == TEXT
    True
    >>> hint_for(KeyError("labl"), {"image": 1, "label": 2})
    "The element has the keys 'image', 'label'. Did you mean 'label'?"
    """
    if isinstance(raised, KeyError):
        return _of_key(raised.args[0], element) if len(raised.args) == 1 else None
    said = str(raised)
    if isinstance(raised, TypeError):
        if is_miscalled(raised):
            return _of_arguments(element)
        if re.search(_DATA_SET, said):
            return WINDOW
        if re.search(_NAMED_PART, said):
            return _of_no_dict(element)
        return TEXT if re.search(_BYTES, said) and re.search(_STR, said) else None
    if isinstance(raised, IndexError):
        return _of_no_dict(element) if re.search(_NAMED_ITEM, said) else None
    if isinstance(raised, AttributeError):
        return _of_attribute(str(getattr(raised, "name", None)), getattr(raised, "obj", None))
    if isinstance(raised, ValueError):
        if re.search(_READ_ONLY, said):
            return "Elements may be read by others too: copy what you change, as in x = x.copy()."
        return TEXT if re.search(_NOT_FOUND, said) else None
    return None


def _of_key(key: Any, element: Any) -> str | None:
    if isinstance(key, bytes):
        return f"The key is {key!r}. {TEXT}"
    for part in element if type(element) is tuple else (element,):
        if isinstance(part, dict) and isinstance(key, str) and key not in part:
            keys = [str(one) for one in part][:_MOST_KEYS]
            listed = ", ".join(map(repr, keys)) + (", …" if len(part) > len(keys) else "")
            import difflib

            near = difflib.get_close_matches(key, keys, 1)
            return f"The element has the keys {listed}." + (f" Did you mean {near[0]!r}?" if near else "")
    return None


def _of_attribute(name: str, of: Any) -> str | None:
    if type(of) is bytes:
        return TEXT if hasattr(str, name) else None
    if type(of) is dict and name in of:
        return f"The value is a dict: write e[{name!r}]."
    import numpy as np

    if isinstance(of, (np.ndarray, np.generic)) or (type(of) is tuple and name == "as_list"):
        return f"{_NUMPY}{_ATTRIBUTES[name]}" if name in _ATTRIBUTES else None
    return None


def _of_no_dict(element: Any) -> str | None:
    """Return a hint for a function that reads a part by its name from an element that is not a dict."""
    if element is NO_ELEMENT or isinstance(element, dict):
        return None
    if type(element) is not tuple:
        return f"The element is {_kind(element)}, and no dict: it has no parts that are named."
    parts = ", ".join(map(_kind, element[:_MOST_KEYS])) + (", …" if len(element) > _MOST_KEYS else "")
    return (
        f"The element is a tuple of {parts}: its parts have no names. A tuple is unpacked into the arguments; they are "
        "what the function names them."
    )


def _kind(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(value, dict):
        return "a dict with " + (", ".join(map(repr, list(value)[:_MOST_KEYS])) or "no keys")
    return f"an array of shape {shape}" if shape else f"one {type(value).__name__}"


def is_miscalled(raised: BaseException) -> bool:
    """Return True if penstock called the user's function with a number of arguments that the function does not take."""
    if not isinstance(raised, TypeError) or not re.search(_COUNTED, str(raised)):
        return False
    trace = raised.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] == "penstock"


def _of_arguments(element: Any) -> str | None:
    if element is NO_ELEMENT:
        return None
    if type(element) is tuple:
        count = len(element)
        names = ", ".join("xyzuvw"[:count]) if count <= 6 else "*parts"
        return (
            f"The element is a tuple of {count}, and a tuple is unpacked into the arguments: write lambda {names}: …, "
            "or lambda *element: … for all of them as one."
        )
    kind = type(element).__name__
    return f"The element is one value ({kind}), and the function is given it as its only argument: write lambda x: …"


_USER = r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<user>[^/?#@\s'\"]*):[^/?#\s'\"]*@"  # up to the last @ of the authority
_QUERY = (
    r"(?P<name>[?&][\w.%-]*(?:sig|token|secret|password|passwd|credential|auth|key|delegation)[\w.%-]*=)[^&#\s'\")]+"
)
_MARK = "***"


def redacted(text: str) -> str:
    r"""Return the text with `***` for passwords in URLs and for secrets in their queries.

    A byte of a file name that is not UTF-8 is written as `\udcff`, which every terminal can print.

    >>> redacted("https://ann:pw@host/a.tfrecord?part=1&X-Amz-Signature=0f3c")
    'https://ann:***@host/a.tfrecord?part=1&X-Amz-Signature=***'
    """
    if "://" not in text:
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    text = re.sub(_USER, rf"\g<scheme>\g<user>:{_MARK}@", text)
    return re.sub(_QUERY, rf"\g<name>{_MARK}", text, flags=re.IGNORECASE)


def size_text(count: float) -> str:
    """Return a number of bytes as a text with decimal units, such as `602 MB`.

    >>> size_text(512), size_text(1.5e6)
    ('512 bytes', '1.5 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{round(count)} bytes"


_TOLD: set[tuple[str, str | None]] = set()  # warnings that this process has shown


def tell(what: str, hint: str, category: type[Warning], where: str | None) -> None:
    """Warn on the user's line, once for each line and `what`. The hint does not count."""
    if (what, where) in _TOLD:
        return
    _TOLD.add((what, where))
    message = f"{what} {hint}"
    file, _, line = (where or "").rpartition(":")
    if file and line.isdigit():
        warnings.warn_explicit(message, category, file, int(line))
    else:
        warnings.warn(message, category, stacklevel=3)
