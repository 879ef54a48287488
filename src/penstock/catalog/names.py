"""Names of data sets and their versions: `name`, `name/config`, `name:1.*.*`, `name/config:1.2.3/argument=value`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import InvalidArgumentError

_NAME = re.compile(
    r"(?P<name>[a-zA-Z]\w*)"
    r"(/(?P<config>[\w+.-]+))?"
    r"(:(?P<version>(\d+|\*)(\.(\d+|\*)){2}|latest))?"
    r"(/(?P<arguments>(\w+=[^,]+,?)+))?"
)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Name:
    """The parts of a name."""

    name: str
    config: str | None = None
    version: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def parse_name(text: str) -> Name:
    """Return the parts of a name in the format of tfds.

    >>> parse_name("wiki/en:1.*.*")
    Name(name='wiki', config='en', version='1.*.*', arguments={})
    >>> parse_name("CatsVsDogs").name
    'cats_vs_dogs'
    """
    found = _NAME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        message = f"{text!r} is not the name of a data set."
        hint = 'A name is "name", "name/config", "name:1.2.3" or "name/config:1.*.*"; versions have three parts.'
        raise InvalidArgumentError(message, hint=hint)
    arguments = dict(part.split("=", 1) for part in (found["arguments"] or "").split(",") if part)
    version = None if found["version"] == "latest" else found["version"]
    values = {key: _value(value) for key, value in arguments.items()}
    return Name(snake_case(found["name"]), found["config"], version, values)


def snake_case(name: str) -> str:
    """Return the name of a data set for the name of its class, by tfds's rule.

    >>> snake_case("CatsVsDogs"), snake_case("IMDBReviews"), snake_case("Cifar10")
    ('cats_vs_dogs', 'imdb_reviews', 'cifar10')
    """
    name = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def is_version(version: Any) -> bool:
    """Return True if the version consists of three numbers.

    >>> is_version("1.0.0"), is_version("1.0")
    (True, False)
    """
    return isinstance(version, str) and _VERSION.fullmatch(version) is not None


def matches(version: str, wanted: str | None) -> bool:
    """Return True if `version` fits `wanted`: the same version, or one with `*` for some numbers.

    >>> matches("1.2.3", "1.*.*"), matches("2.0.0", "1.*.*"), matches("2.0.0", None)
    (True, False, True)
    """
    if wanted is None:
        return True
    pairs = zip(version.split("."), wanted.split("."), strict=False)
    return all(want in ("*", have) for have, want in pairs)


def newest(versions: Iterable[str], wanted: str | None = None) -> str | None:
    """Return the highest version that fits `wanted`, or None.

    >>> newest(["1.9.0", "1.10.0", "2.0.0", "incomplete"], "1.*.*")
    '1.10.0'
    """
    found = [version for version in versions if _VERSION.fullmatch(version) and matches(version, wanted)]
    return max(found, key=lambda version: tuple(map(int, version.split("."))), default=None)


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
