"""What pages, the Makefile and pyproject.toml name is there: modules, files, tests; and READMEs leave out none."""

import re
from pathlib import Path

from tests import mutants

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
TOPS = "src", "tests", "tools", "benchmarks", "examples"
FILES = [path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))]
PAGES = sorted(page for top in ("src", "tests", "docs", "benchmarks") for page in (ROOT / top).rglob("*.md"))
PAGES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
READMES = [page for page in PAGES if page.name == "README.md" and page.is_relative_to(SOURCES)]
SETTINGS = [ROOT / "Makefile", ROOT / "pyproject.toml", mutants.LISTED]
OTHERS = {"penstock.md", "penstock.builders"}  # a page, and a group of entry points
OF_TENSORFLOW = re.compile(r"\w+_test\.py")


def named(page):
    return page.relative_to(ROOT).as_posix()


def is_there(name):
    """Whether it is a module, or one whose text has the next word of `name`."""
    words = name.split(".")
    for count in range(len(words), 0, -1):
        module = SOURCES.joinpath(*words[:count])
        for file in (module.with_suffix(".py"), module / "__init__.py"):
            if file.is_file():
                text = file.read_text(encoding="utf-8")
                return count == len(words) or re.search(rf"\b{words[count]}\b", text) is not None
    return False


def test_modules_that_are_named_are_there():
    missing = []
    for page in (*PAGES, *SETTINGS):
        names = sorted(set(re.findall(r"\bpenstock(?:\.[a-z_][a-z_0-9]*)+\b", page.read_text(encoding="utf-8"))))
        missing += [f"{named(page)}: {name}" for name in names if name not in OTHERS and not is_there(name)]
    assert missing == []


def test_files_that_are_named_are_there():
    """In the tree of a package's README they lie in that package."""
    known = "".join(f"/{named(path)}\n" for path in FILES)
    missing = []
    for page in PAGES:
        below = "".join(f"/{named(path)}\n" for path in FILES if page in READMES and page.parent in path.parents)
        for number, part in enumerate(page.read_text(encoding="utf-8").split("```")):
            for name in re.findall(r"(?<![\w.…/])[\w/]*\w\.py\b", part):
                among = below if page in READMES and number == 1 else known
                if f"/{name}\n" not in among and not OF_TENSORFLOW.fullmatch(name):
                    missing.append(f"{named(page)}: {name}")
    assert missing == []


def test_a_readme_names_all_that_lies_beside_it():
    missing = []
    for page in READMES:
        text = page.read_text(encoding="utf-8")
        for path in sorted(page.parent.iterdir()):
            module = path.stem if path.suffix == ".py" or (path / "__init__.py").is_file() else "__init__"
            if module != "__init__" and not re.search(rf"\b{module}\b", text):
                missing.append(f"{named(page)}: {path.name}")
    assert missing == []


def test_the_list_of_design_notes_is_complete():
    folder = ROOT / "docs/design"
    listed = set(re.findall(r"\]\(([^)/]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {page.name for page in folder.glob("*.md")} - {"README.md"}


def test_the_makefile_names_tests_that_are_there():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    paths = set(re.findall(r"\btests/[\w/]+(?:\.\w+)?(?![\w%])", text)) - {"tests/dataset/test_"}
    quick = re.search(r"test_%\.py,([^)]*)\)", text)[1].replace("\\\n", " ").split()
    paths |= {f"tests/dataset/test_{name}.py" for name in quick}
    assert len(paths) > 20
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_make_mutants_knows_its_modules_their_tests_and_the_lines_it_leaves():
    known = {module: tests for modules in mutants.TESTS.values() for module, tests in modules.items()}
    assert [test for tests in known.values() for test in tests if not (ROOT / test).exists()] == []
    code = {module: mutants.path_of(module).read_text(encoding="utf-8") for module in known}
    for change in mutants.reasons():
        module, line = change.split(" -> ")[0].split(": ", 1)
        assert line in code[module], f"{change}: that line is gone"
