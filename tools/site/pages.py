"""Write the sources of the documentation site: the pages of docs/, and an API page for each public module.

    python tools/site/pages.py FOLDER             # before the site is rendered
    python tools/site/pages.py --check FOLDER     # afterwards

FOLDER receives `pages/` and `mkdocs.yml`, which `zensical build` renders; `src/`, the files that define public names;
and `files`, their paths. `docs/site.toml` has the settings and the navigation. The API pages list the public names of
the modules, as directives of mkdocstrings.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import penstock as ps

ROOT = Path(__file__).parents[2]
API = "reference/api"
# Pages of the root, and their places in the site.
COPIED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]*)((?:#[^)\s]*)?\))")

LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\bsrc=\"?(?:https?:)?//[^\s>]*|<link[^>]*stylesheet[^>]*//[^\s>]*")

ALONE = ["    options:", "      members: false", "      inherited_members: false"]  # an entry without its members
UNTITLED = ["      show_root_heading: false", "      show_root_toc_entry: false"]

# Sections of the page of Dataset: the classes that Dataset consists of, and their titles.
SECTIONS = {
    "Create": "Create from values, functions and files",
    "Sequences": "Create from sequences",
    "Converting": "Create from other libraries",
    "Transform": "Transform elements",
    "Batching": "Batch",
    "Grouping": "Group and window",
    "Mixing": "Mix data sets",
    "Stateful": "Shuffle, scan and filter with state",
    "Packing": "Pack sequences",
    "Indexing": "Look up elements by index",
    "Storing": "Save and load",
    "Frameworks": "Feed a framework",
    "Distributing": "Distribute",
    "Explaining": "Explain and profile",
    "Showing": "Show elements",
    "Dataset": "Properties, options and checks",
}


def modules() -> dict[str, ModuleType]:
    """Return the public modules by the name a user writes, each with `__all__`."""
    found, waiting = {}, [("penstock", ps)]
    while waiting:
        name, module = waiting.pop(0)
        found[name] = module
        if name != "penstock.compat":  # tf and tfds have TensorFlow's names: docs/reference has tables of them
            things = {f"{name}.{below}": member(module, below) for below in module.__all__}
            waiting += [(each, thing) for each, thing in things.items() if isinstance(thing, ModuleType)]
    return found


def member(module: ModuleType, name: str) -> Any:
    """Return a public name of a module, or None if it is a submodule or needs a package that is not installed."""
    try:
        return getattr(module, name)
    except (ImportError, AttributeError):  # a submodule that is not imported is no attribute
        return None


def entries() -> dict[str, list[str]]:
    """Return the identifiers of all entries, by page: the members of Dataset and the names of each module."""
    found = {}
    for name, module in modules().items():
        names = [each for each in module.__all__ if f"{name}.{each}" not in modules()]
        found[name] = [f"{name}.{each}" for each in names]
    found["penstock.Dataset"] = ["penstock.Dataset", *(f"penstock.Dataset.{name}" for _, name in dataset_members())]
    found["penstock"].remove("penstock.Dataset")
    return found


def dataset_members() -> Iterator[tuple[str, str]]:
    """Yield the public members of Dataset, each with the name of the class that defines it."""
    seen = set()
    for kind in ps.Dataset.__mro__[1:-2] + ps.Dataset.__mro__[:1]:
        for name in vars(kind):
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield kind.__name__, name


def defining_files() -> Iterator[Path]:
    """Yield the files of src that define public names, and the files that import them.

    mkdocstrings reads all files that it gets, and most files of src are internal.
    """
    yield from (ROOT / "src").rglob("__init__.py")
    yield from (ROOT / "src").rglob("public.py")
    things = [member(module, name) for module in modules().values() for name in module.__all__]
    kinds = [kind for thing in things if isinstance(thing, type) for kind in thing.__mro__]
    names = {thing.__module__ for thing in [*things, *kinds] if hasattr(thing, "__module__")}
    names |= {module.__name__ for module in modules().values()}
    names |= set(re.findall(r"^from (penstock\S+) import", inspect.getsource(ps), re.MULTILINE))  # of constants
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).is_relative_to(ROOT / "src"):
            yield Path(file)


@cache
def constants() -> dict[str, str]:
    """Return the docstrings of constants by their names: the strings below assignments."""
    found = {}
    for file in set(defining_files()):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        for assigned, text in pairwise(body):
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                target = getattr(assigned, "target", None) or getattr(assigned, "targets", [None])[0]
                found[getattr(target, "id", "")] = str(text.value.value)
    return found


def first_sentence(identifier: str) -> str:
    """Return the first paragraph of a docstring, for a cell of a table."""
    owner, _, name = identifier.rpartition(".")
    thing = ps.Dataset if owner == "penstock.Dataset" else modules().get(owner)
    value = inspect.getattr_static(thing, name) if isinstance(thing, type) else member(thing, name)
    value = getattr(value, "__func__", value)
    described = isinstance(value, (type, property, ModuleType, FunctionType))
    text = (inspect.getdoc(value) if described else constants().get(name)) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def table(identifiers: list[str]) -> list[str]:
    rows = []
    for identifier in identifiers:
        name = identifier.rpartition(".")[2]
        rows.append(f"| [`{name}`][{identifier}] | {first_sentence(identifier)} |")
    return ["| name | meaning |", "|---|---|", *rows, ""]


def module_page(name: str, identifiers: list[str]) -> str:
    below = [each for each in modules() if each.rpartition(".")[0] == name]
    if name == "penstock":
        below.insert(0, "penstock.Dataset")
    lines = [f"# {name}", "", f"::: {name}", *ALONE, *UNTITLED, ""]
    lines += [*(f"- [`{each}`]({each}.md)" for each in below), "", *table(identifiers)]
    for identifier in identifiers:
        lines += [f"::: {identifier}", *(ALONE if name == "penstock.compat" else []), ""]
    return "\n".join(lines)


def dataset_page() -> str:
    members = list(dataset_members())
    lines = ["# penstock.Dataset", "", "::: penstock.Dataset", *ALONE, ""]
    for kind, title in SECTIONS.items():
        names = sorted(f"penstock.Dataset.{name}" for owner, name in members if owner == kind)
        lines += [f"## {title}", "", *table(names)]
        for name in names:
            lines += [f"::: {name}", "    options:", "      heading_level: 3", ""]
    missing = {kind for kind, _ in members} - SECTIONS.keys()
    assert not missing, f"SECTIONS of {__file__} needs a title for {missing}"
    return "\n".join(lines)


def settings(kind: type[Any] = ps.Options, lead: str = "") -> dict[str, Any]:
    """Return all settings of `Options` and of its groups by their paths."""
    found = {f"{lead}{name}": setting for name, setting in kind._settings.items()}
    for name, below in kind._below.items():
        found |= settings(below.kind, f"{lead}{name}.")
    return found


def settings_page() -> str:
    lines = ["# Settings of Options", ""]
    lines += ["Pass a setting to [`penstock.Options`][], and the options to [`penstock.Dataset.with_options`][].", ""]
    lines += ["| name | default | meaning | since |", "|---|---|---|---|"]
    for path, setting in settings().items():
        lines.append(f"| `{path}` | `{setting.default!r}` | {setting.__doc__} | {setting.since} |")
    return "\n".join(lines)


def relinked(text: str, source: Path, repository: str) -> str:
    """Return a page whose links lead to pages of the site, or to the repository for files that are not pages."""

    def link(found: re.Match[str]) -> str:
        opened, target, closed = found.groups()
        path = (source.parent / target).resolve() if target else source
        if not target or not path.exists():
            return found[0]
        inside = path.relative_to(ROOT)
        folder = Path("docs") if inside.parts[0] == "docs" else Path()
        if str(inside) in COPIED:
            inside, folder = Path(COPIED[str(inside)]), Path()
        elif not folder.parts or path.is_dir():
            return f"{opened}{repository}/{'tree' if path.is_dir() else 'blob'}/main/{inside}{closed}"
        here = source.relative_to(ROOT / "docs").parent if source.is_relative_to(ROOT / "docs") else Path()
        return f"{opened}{'../' * len(here.parts)}{inside.relative_to(folder)}{closed}"

    return LINK.sub(link, text)


def navigation(items: list[Any], pages: Path) -> list[Any]:
    """Return the navigation with each `folder/*` replaced by the pages of that folder."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            found += [{title: navigation(below, pages) for title, below in item.items()}]
        elif item.endswith("/*"):
            below = sorted((pages / item).parent.glob("*.md"), key=lambda page: page.stem)
            found += [str(page.relative_to(pages)) for page in below]
        else:
            found.append(item)
    return found


def listed(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            for below in item.values():
                yield from listed(below)
        else:
            yield item


def write(into: Path) -> None:
    """Write the pages and the configuration."""
    shutil.rmtree(into / "pages", ignore_errors=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]
    sources = {ROOT / source: target for source, target in COPIED.items()}
    sources |= {page: str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    texts = {target: relinked(page.read_text(encoding="utf-8"), page, repository) for page, target in sources.items()}
    for name, identifiers in entries().items():
        texts[f"{API}/{name}.md"] = dataset_page() if name == "penstock.Dataset" else module_page(name, identifiers)
    texts[f"{API}/settings.md"] = settings_page()
    for target, text in texts.items():
        (into / "pages" / target).parent.mkdir(parents=True, exist_ok=True)
        (into / "pages" / target).write_text(text, encoding="utf-8")
    for kind in ("*.css", "*.svg", "*.png"):
        for file in (ROOT / "docs").rglob(kind):
            (into / "pages" / file.relative_to(ROOT / "docs")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, into / "pages" / file.relative_to(ROOT / "docs"))
    shutil.rmtree(into / "src", ignore_errors=True)
    files = sorted(set(defining_files()))
    (into / "files").write_text("\n".join(str(file.relative_to(ROOT)) for file in files), encoding="utf-8")
    for file in files:
        (into / file.relative_to(ROOT).parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, into / file.relative_to(ROOT))
    configured = tomllib.loads((ROOT / "docs" / "site.toml").read_text(encoding="utf-8"))
    configured["nav"] = navigation(configured["nav"], into / "pages")
    unlisted = texts.keys() - set(listed(configured["nav"]))
    assert not unlisted, f"the navigation of docs/site.toml leaves out {sorted(unlisted)}"
    configured |= {"docs_dir": "pages", "site_dir": "html"}
    handler = {"paths": ["src"], "options": configured.pop("mkdocstrings")}
    handler["options"]["extensions"] = [str(Path(__file__).with_name("docstrings.py"))]
    configured["plugins"] = ["search", {"mkdocstrings": {"handlers": {"python": handler}}}]
    (into / "mkdocs.yml").write_text(json.dumps(configured, indent=1), encoding="utf-8")  # JSON is YAML


def check(into: Path) -> None:
    """Raise AssertionError if a public name has no entry, or if a page loads a file from another host."""
    pages = {name: (into / "html" / API / f"{name}.html").read_text(encoding="utf-8") for name in entries()}
    missing = [each for name, below in entries().items() for each in below if f'id="{each}"' not in pages[name]]
    assert not missing, f"public names without an entry in {API}: {missing}"
    for page in (into / "html").rglob("*.html"):
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert not loaded, f"{page} loads {loaded} from another host"


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(Path(sys.argv[2]))
    else:
        write(Path(sys.argv[1]))
