"""`tf.raw_ops`: operations of data code under TensorFlow's internal names, with keyword arguments.

>>> import penstock.compat.tf.raw_ops as raw_ops
>>> raw_ops.StringLower(input="Ab").numpy()
b'ab'
"""

from __future__ import annotations

from typing import Any

from penstock.compat import tf
from penstock.compat.teaching import unknown

_NAMES = {  # functions whose arguments have the same names in both
    "tf": "reshape expand_dims squeeze shape size rank fill tile one_hot identity range",
    "io": """read_file write_file decode_jpeg decode_png decode_gif decode_bmp decode_image encode_png decode_base64
        encode_base64 decode_compressed matching_files parse_tensor""",
    "math": "maximum minimum add floor ceil round sqrt square exp log abs sign",
    "strings": "substr regex_replace regex_full_match as_string",
    "strings String": "lower upper strip length to_hash_bucket_fast",
}
_FUNCTIONS = {
    f"{place.partition(' ')[2]}{name.title().replace('_', '')}": (place.partition(" ")[0], name)
    for place, names in _NAMES.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _FUNCTIONS:
        raise unknown("tf.raw_ops", name, {}, _FUNCTIONS)
    place, function = _FUNCTIONS[name]
    return getattr(tf if place == "tf" else getattr(tf, place), function)
