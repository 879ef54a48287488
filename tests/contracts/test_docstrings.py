"""Docstrings of public functions and classes have the sections that the reference renders.

`make docs` also runs pydoclint.
"""

import importlib.util
import inspect
import re
from pathlib import Path

import penstock as ps

ROOT = Path(__file__).parents[2]


def public():
    """Each public function and class by its identifier, where it can be imported without a framework."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "tools" / "site" / "pages.py")
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    for page, names in site.entries().items():
        for identifier in names:
            name = identifier.rpartition(".")[2]
            owner = ps.Dataset if identifier.startswith("penstock.Dataset.") else site.modules().get(page)
            thing = owner if owner is None or identifier == page else site.member(owner, name)
            if callable(thing) and not isinstance(thing, property):
                yield identifier, thing


def sections(thing):
    """The sections of a docstring by their titles."""
    parts = re.split(r"^(Args|Returns|Raises|Yields|Example):\n", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def parameters(thing):
    """The parameters of a call, with the stars of the signature."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(thing).parameters.values()
    return [f"{stars.get(each.kind, '')}{each.name}" for each in found if each.name not in ("self", "cls")]


def lacks(thing):
    """What the docstring of a public function or class lacks."""
    found = sections(thing)
    if isinstance(thing, type):
        return [] if issubclass(thing, Exception) or "Example" in found else ["Example"]
    described = re.findall(r"^    (\*{0,2}\w+): ", found.get("Args", ""), re.MULTILINE)
    wanted = parameters(thing)
    returned = inspect.signature(thing).return_annotation
    lacking = [] if described == wanted else [f"Args are {described}, the parameters {wanted}"]
    lacking += [] if returned in (None, "None") or "Returns" in found else ["Returns"]
    return lacking + ([] if "Example" in found else ["Example"])


THINGS = dict(public())


def test_the_check_sees_what_is_lacking():
    def good(x, *rest):
        """Do it.

        Args:
            x: A number.
            *rest: More numbers.

        Returns:
            A number.

        Example:
            >>> 1
            1
        """

    def bad(x, y):
        """Do it.

        Args:
            x: A number.
        """

    assert lacks(good) == []
    assert lacks(bad) == ["Args are ['x'], the parameters ['x', 'y']", "Returns", "Example"]
    assert len(THINGS) > 250


def test_public_docstrings_have_their_sections():
    lacking = {name: found for name, thing in THINGS.items() if (found := lacks(thing))}
    assert lacking == {}
