"""The pages of the site that are generated: an entry for every public name. `make docs` renders them."""

import importlib.util
import inspect
from pathlib import Path

import pytest

import penstock as ps

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("pages", ROOT / "tools" / "site" / "pages.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def written(site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    site.write(folder)
    return folder


def test_every_public_name_has_an_entry(site, written):
    pages = {page.stem: page.read_text() for page in (written / "pages" / site.API).glob("*.md")}
    for name, module in site.modules().items():
        for public in dir(module):
            entry = f"{name}.{public}"
            assert entry in pages or f"::: {entry}\n" in pages[name], f"{entry} has no entry"
    for public in dir(ps.Dataset):
        assert public.startswith("_") or f"::: penstock.Dataset.{public}\n" in pages["penstock.Dataset"], public


def test_a_public_name_without_an_entry_fails_the_build(site, written):
    for page in (written / "pages" / site.API).glob("*.md"):
        entries = [line[4:] for line in page.read_text().splitlines() if line.startswith("::: ")]
        rendered = written / "html" / site.API / f"{page.stem}.html"
        rendered.parent.mkdir(parents=True, exist_ok=True)
        rendered.write_text("".join(f'<h2 id="{entry}">' for entry in entries if entry != "penstock.Dataset.map"))
    with pytest.raises(AssertionError, match=r"without an entry in reference/api: \['penstock.Dataset.map'\]"):
        site.check(written)


def test_every_setting_stands_in_the_table(site, written):
    table = (written / "pages" / site.API / "settings.md").read_text()
    assert [name for name in site.settings() if f"| `{name}` |" not in table] == []


@pytest.mark.parametrize("group", [ps.Options, ps.ThreadingOptions, ps.experimental.AutotuneOptions])
def test_every_setting_is_a_keyword_parameter(group):
    parameters = inspect.signature(group).parameters
    assert set(parameters) == {*group._settings, *group._below, *group._aliases, "others"}
    assert {each.kind for name, each in parameters.items() if name != "others"} == {inspect.Parameter.KEYWORD_ONLY}


def test_links_out_of_docs_lead_to_pages_or_to_the_repository(site):
    source = ROOT / "docs" / "design" / "0007-worker-processes.md"
    assert site.relinked("[a](../../CONTRIBUTING.md#b)", source, "https://r") == "[a](../contributing.md#b)"
    assert site.relinked("[a](../../Makefile)", source, "https://r") == "[a](https://r/blob/main/Makefile)"
    assert site.relinked("[a](0009-autotune.md)", source, "https://r") == "[a](../design/0009-autotune.md)"
    assert site.relinked("[a](docs/README.md)", ROOT / "README.md", "https://r") == "[a](README.md)"
    assert site.relinked("[a](nowhere.md)", source, "https://r") == "[a](nowhere.md)"  # which the build refuses


def test_a_page_that_the_navigation_leaves_out_is_refused(site, tmp_path, monkeypatch):
    monkeypatch.setattr(site, "listed", lambda items: ["README.md"])
    with pytest.raises(AssertionError, match=r"docs/site\.toml leaves out"):
        site.write(tmp_path)
