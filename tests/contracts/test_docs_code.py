"""Every Python block of the documentation runs, prints what the page says it prints, and every link leads somewhere.

The blocks of a page run in order in one namespace, in an empty directory. Around a block stand, where needed:

- ```` ```text ```` directly below: what the block prints (`...` stands for anything);
- `<!-- not run: reason -->` directly above: the block is left out, for the reason given;
- `<!-- data: shapes -->` anywhere above: the page finds a small `shapes` data set under `data/`;
- `<!-- needs: torch -->` directly above: the block runs where that module is installed;
- `<!-- needs: torch -->` elsewhere: the page runs where that module is installed;
- `<!-- excerpts of: examples/x.py -->` anywhere above: the page shows parts of that program, which others run.
"""

import contextlib
import doctest
import importlib.util
import io
import json
import linecache
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import penstock as ps

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    + [page for page in (ROOT / "docs").rglob("*.md") if "design" not in page.relative_to(ROOT).parts]
)
NOT_RUN = re.compile(r"<!--\s*not run:\s*(?P<reason>.*?)\s*-->")
DATA = re.compile(r"<!--\s*data: shapes\s*-->")
NEEDS = re.compile(r"<!--\s*needs:\s*(?P<module>\w+)\s*-->")
PAGE_NEEDS = re.compile(NEEDS.pattern + r"(?!\s*```)")
EXCERPTS = re.compile(r"<!--\s*excerpts of:\s*(?P<program>\S+)\s*-->")
SCRIPT = "train.py"  # what error texts call the page's code


@dataclass(frozen=True)
class Block:
    line: int
    code: str
    prints: str | None
    not_run: str | None
    needs: str | None


def blocks(text):
    """The Python blocks of a page, each with what must be printed and why it may be left out."""
    tokens = MarkdownIt().parse(text)
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.type != "fence" or token.info.strip() != "python":
            continue
        marker = before.content if before is not None and before.type == "html_block" else ""
        not_run, needs = NOT_RUN.search(marker), NEEDS.search(marker)
        prints = after.content if after is not None and after.type == "fence" and after.info == "text" else None
        yield Block(token.map[0] + 1, token.content, prints, not_run and not_run["reason"], needs and needs["module"])


def missing(module):
    return importlib.util.find_spec(module) is None


def run(text):
    """Execute the blocks of a page and compare what they print."""
    namespace = {"__name__": "__main__", "__file__": SCRIPT}
    lines = []
    for block in blocks(text):
        if block.not_run is not None or (block.needs and missing(block.needs)):
            continue
        if block.needs == "tensorflow" and not missing("torchvision"):
            importlib.import_module("torchvision")  # with torch 2.14 it crashes if TensorFlow was imported first
        printed = io.StringIO()
        # Blank lines in front: a traceback names the line of the page.
        program = compile("\n" * block.line + block.code, SCRIPT, "exec")
        lines += [""] * (block.line - len(lines)) + block.code.splitlines()
        linecache.cache[SCRIPT] = (0, None, [f"{line}\n" for line in lines], SCRIPT)  # where functions are read
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        if block.prints is not None:
            same = doctest.OutputChecker().check_output(block.prints, printed.getvalue(), doctest.ELLIPSIS)
            assert same, f"line {block.line} of the page prints\n{printed.getvalue()}\nthe page says\n{block.prints}"


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    """A `data` folder that looks as `penstock prepare shapes` leaves it, with fewer pictures; prepared once."""
    from penstock.catalog import builder

    folder = tmp_path_factory.mktemp("data")
    builder("shapes", data_dir=folder, num_examples=80).download_and_prepare()
    (smaller,) = (folder / "shapes").glob("*_examples/*")  # a data set of another size has a folder of its own
    smaller.rename(folder / "shapes" / smaller.name)
    smaller.parent.rmdir()
    return folder


LEAVES_FILES_OPEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def marked(page):
    others = "needs: webdataset" in page.read_text(encoding="utf-8")  # its iterator leaves archives open
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=[LEAVES_FILES_OPEN] if others else [])


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_code_blocks(page, request, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    if not list(blocks(text)):
        return
    if excerpts := EXCERPTS.search(text):
        program = (ROOT / excerpts["program"]).read_text(encoding="utf-8")
        assert [block.line for block in blocks(text) if block.code not in program] == [], "not in the program"
        return
    for needed in PAGE_NEEDS.finditer(text):
        if missing(needed["module"]):
            pytest.skip(f"{needed['module']} is not installed")
    monkeypatch.chdir(tmp_path)
    if DATA.search(text):
        (tmp_path / "data").symlink_to(request.getfixturevalue("shapes"))
    run(text)


def test_the_notebook_runs(tmp_path, monkeypatch):
    cells = json.loads((ROOT / "docs/tutorial/quickstart.ipynb").read_text(encoding="utf-8"))["cells"]
    assert len(cells) <= 12
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "__main__"}, []
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile("".join(cell["source"]), SCRIPT, "exec"), namespace)
            printed.append(output.getvalue())
    assert printed[0] == "[0 1 4 9]\n[16 25 36 49]\n[64 81]\n"
    assert printed[1] == "60 ['blue', 'red']\n"
    assert printed[2].startswith("(16, 64, 64, 3) float32")
    assert printed[4] == "right in the last epoch: 48 of 48\n"
    assert "map(prepare)" in printed[5]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_a_block_left_out_says_why():
    reasons = [block.not_run for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))]
    assert "" not in reasons


def test_a_wrong_page_is_caught():
    run("```python\nprint(1 + 1)\n```\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="line 1 of the page prints"):
        run("```python\nprint(1 + 1)\n```\n```text\n3\n```\n")
    with pytest.raises(ZeroDivisionError):
        run("```python\nx = 0\n```\n\n```python\n1 / x\n```\n")


def test_a_block_runs_where_its_module_is_installed():
    run("<!-- needs: no_such_module -->\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError):
        run("<!-- needs: json -->\n```python\n1 / 0\n```\n")
    assert PAGE_NEEDS.search("<!-- needs: json -->\n\n```python\n") is None
    assert PAGE_NEEDS.search("<!-- needs: json -->\n\nA page.\n\n```python\n")["module"] == "json"


def members(status):
    """First column of the rows of docs/reference/tf-data.md that carry `status`."""
    rows = re.findall(r"^\| `([\w.]+)[^|]*\| (\w+) \|", (ROOT / "docs/reference/tf-data.md").read_text(), re.MULTILINE)
    assert {row[1] for row in rows} == {"done", "differs", "never"}
    return [name for name, found in rows if found == status]


def reached(dotted):
    """Whether `Dataset.map` or `TFRecordDataset` exists in penstock."""
    thing = ps
    for name in dotted.split("."):
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


def test_the_tf_data_table_is_true():
    there = members("done") + members("differs")
    assert [name for name in there if not reached(name)] == []
    assert [name for name in members("never") if reached(name)] == [], "there, but the table says it is not"
