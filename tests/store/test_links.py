"""Symbolic links in place of an entry's files: their targets are never written to."""

from pathlib import Path

import numpy as np
import pytest

import penstock as ps

BUILDS = {
    "cache": lambda path: ps.Dataset.range(40).map(lambda x: np.full(3, x)).cache(path),
    "snapshot": lambda path: ps.Dataset.range(40).map(lambda x: np.full(3, x)).snapshot(path),
}


def files_of(folder):
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def linked(path, victim):
    path.unlink(missing_ok=True)
    path.symlink_to(victim)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("name", BUILDS)
def test_what_a_link_names_stays_as_it_is(name, complete, tmp_path):
    build = BUILDS[name]
    wanted = [element.tolist() for element in build(tmp_path / "first")]
    victim = tmp_path / "victim"
    for number, file in enumerate([path.relative_to(tmp_path / "first") for path in files_of(tmp_path / "first")]):
        folder = tmp_path / f"entry{number}"
        ds = build(folder)
        with ds.iterator() as elements:
            assert [element.tolist() for element in elements] == wanted
        for path in files_of(folder):  # part of an iteration, or none: all has to be written again
            if not complete and path.relative_to(folder) != file:
                path.unlink()
        victim.write_bytes(b"precious")
        linked(folder / file, victim)
        for _ in range(2):
            try:
                assert [element.tolist() for element in build(folder)] == wanted
            except ps.errors.DataLossError:  # a damaged snapshot is not rewritten without a request
                assert name == "snapshot"
        assert victim.read_bytes() == b"precious", file


def test_links_that_are_there_first(tmp_path):
    """The names are known, so another program may have created links before the first write."""
    victim = tmp_path / "victim"
    list(BUILDS["cache"](tmp_path / "first"))
    names = [path.relative_to(tmp_path / "first") for path in files_of(tmp_path / "first")]
    assert any(name.name == "writer.lock" for name in names)
    for number, name in enumerate(names):
        victim.write_bytes(b"precious")
        path = tmp_path / f"entry{number}" / name
        path.parent.mkdir(parents=True)
        path.symlink_to(victim)
        ds = BUILDS["cache"](tmp_path / f"entry{number}")
        for _ in range(2):
            assert [int(element[0]) for element in ds] == list(range(40))
        assert victim.read_bytes() == b"precious", name
