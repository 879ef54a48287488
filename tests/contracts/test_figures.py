"""The figures of the documentation are small and have text alternatives; the program that they show runs."""

import importlib.util
import re
from pathlib import Path

import pytest

import penstock as ps

ROOT = Path(__file__).parents[2]
FIGURES = sorted((ROOT / "docs" / "figures").iterdir())
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = loaded(ROOT / "examples" / "make_it_fast.py")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    program.write_images(folder, shards=2, images=4)
    return ps.Dataset.list_files(f"{folder}/*.tfrecord", shuffle=False)


def labels(batches):
    return [int(label) for _, batch in batches for label in batch]


@pytest.mark.parametrize("name", [*program.VARIANTS, "early_shuffle", "late_shuffle", "snapshot", "distributed"])
def test_every_variant_of_the_program_gives_the_same_elements(name, files, tmp_path):
    further = {"snapshot": (tmp_path,), "distributed": ("local",)}.get(name, ())
    found = labels(getattr(program, name)(files, *further).with_options(program.AS_WRITTEN))
    expected = labels(program.slow(files))
    if "shuffle" in name or name == "fast":
        found, expected = sorted(found), sorted(expected)
    assert found == expected
    assert len(found) == 8


def test_a_training_has_a_rate(files):
    rate, waiting = program.train(files.interleave(ps.TFRecordDataset).map(program.decode).batch(4).repeat(100), 0.01)
    assert rate > 0
    assert 0 <= waiting <= 1


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.name)
def test_figures_are_small(path):
    assert path.stat().st_size < {".svg": 30_000, ".png": 150_000, ".json": 20_000}[path.suffix]


def test_screenshots_are_small_together():
    assert sum(path.stat().st_size for path in FIGURES if path.suffix == ".png") < 600_000


@pytest.mark.parametrize("path", [path for path in FIGURES if path.suffix == ".svg"], ids=lambda path: path.name)
def test_drawings_have_a_title_and_a_dark_form(path):
    text = path.read_text(encoding="utf-8")
    assert re.search(r"<title>\w[^<]+</title>", text)
    assert "prefers-color-scheme:dark" in text


def test_each_figure_is_shown_with_a_text_alternative():
    shown = "".join(page.read_text(encoding="utf-8") for page in (*PAGES, ROOT / "README.md"))
    for path in FIGURES:
        name = re.escape(path.name)
        assert path.suffix == ".json" or re.search(rf"!\[\w[^\]]+\]\((?:\.\./)?[\w/]*figures/{name}\)", shown)


def test_no_generated_part_of_a_page_is_empty():
    for page in (*PAGES, ROOT / "README.md"):
        assert not re.search(r"<!-- begin: (.*) -->\n<!-- end: \1 -->", page.read_text(encoding="utf-8")), page
