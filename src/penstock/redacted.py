"""Redacted: the text of a URL without what gives access: passwords, signatures, tokens."""

from __future__ import annotations

import re

_USER = r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<user>[^/?#@\s'\"]*):[^/?#\s'\"]*@"  # up to the last @ of it
_QUERY = (
    r"(?P<name>[?&][\w.%-]*(?:sig|token|secret|password|passwd|credential|auth|key|delegation)[\w.%-]*=)[^&#\s'\")]+"
)
_MARK = "***"


def redacted(text: str) -> str:
    """The text with `***` for passwords in URLs and for what stands in their queries to give access.

    >>> redacted("https://ann:pw@host/a.tfrecord?part=1&X-Amz-Signature=0f3c")
    'https://ann:***@host/a.tfrecord?part=1&X-Amz-Signature=***'
    """
    if "://" not in text:
        return text
    text = re.sub(_USER, rf"\g<scheme>\g<user>:{_MARK}@", text)
    return re.sub(_QUERY, rf"\g<name>{_MARK}", text, flags=re.IGNORECASE)
