"""The public names: the façade says what it holds, each name says what it is, and no name can go unnoticed.

There is no list of them here: `__all__` of a module is the list, and what uses a name is what holds it.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import penstock as ps

ROOT = Path(__file__).parents[2]

PARTS = (
    "",
    ".experimental",
    ".errors",
    ".io",
    ".image",
    ".audio",
    ".video",
    ".catalog",
    ".catalog.features",
    ".formats",
)
PARTS += (".profiler", ".service", ".testing", ".viz", ".dataset.schedule")
SPACES = pytest.mark.parametrize("name", [f"penstock{part}" for part in PARTS])
OPTIONAL = [f"penstock.{name}" for name in ("compat", "jax", "torch")]  # their names need more than penstock


@SPACES
def test_all_is_true(name):
    space = importlib.import_module(name)
    assert sorted(space.__all__) == sorted(set(space.__all__)), "a name is listed twice"
    assert [name for name in space.__all__ if not hasattr(space, name)] == []


@SPACES
def test_every_public_name_is_documented(name):
    space = importlib.import_module(name)
    public = {public: getattr(space, public) for public in space.__all__}
    describable = {public: thing for public, thing in public.items() if callable(thing) or inspect.ismodule(thing)}
    assert [public for public, thing in describable.items() if not thing.__doc__] == []


@pytest.mark.parametrize("name", [*SPACES.args[1], *OPTIONAL])
def test_dir_shows_the_public_names_and_nothing_else(name):
    space = importlib.import_module(name)
    assert sorted(space.__all__) == dir(space)


def test_every_public_module_is_held_to_this():
    modules = {thing.__name__ for name in ps.__all__ if inspect.ismodule(thing := getattr(ps, name))}
    assert modules - {*SPACES.args[1], *OPTIONAL} == set()


def public_members():
    return sorted(name for name in dir(ps.Dataset) if not name.startswith("_"))


def test_a_test_or_a_page_uses_every_public_name():
    """So that one that goes is missed: `name` behind a point, or imported."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    used = {name for text in texts for name in re.findall(r"\.(\w+)", text)}
    imported = [names for text in texts for names in re.findall(r"\bimport \(?([\w ,\n]+)", text)]
    used |= {name for names in imported for name in re.findall(r"\w+", names)}
    public = {name for space in SPACES.args[1] for name in importlib.import_module(space).__all__}
    assert sorted({*public, *public_members()} - used) == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        ps.no_such_name  # noqa: B018


def test_every_dataset_member_is_documented():
    members = {name: inspect.getattr_static(ps.Dataset, name) for name in public_members()}
    assert [name for name, member in members.items() if not getattr(member, "__func__", member).__doc__] == []


def test_defaults_are_those_of_tf_data():
    """Parameter order is what people type without looking."""

    def parameters(member):
        return [name for name in inspect.signature(member).parameters if name != "self"]

    def starts_with(member, *names):
        assert parameters(member)[: len(names)] == list(names)

    starts_with(ps.Dataset.map, "map_func", "num_parallel_calls", "deterministic")
    starts_with(ps.Dataset.batch, "batch_size", "drop_remainder")
    starts_with(ps.Dataset.shuffle, "buffer_size", "seed", "reshuffle_each_iteration")
    starts_with(
        ps.Dataset.interleave, "map_func", "cycle_length", "block_length", "num_parallel_calls", "deterministic"
    )
    starts_with(ps.Dataset.shard, "num_shards", "index")
    starts_with(ps.Dataset.repeat, "count")
    starts_with(
        ps.Dataset.sample_from_datasets,
        "datasets",
        "weights",
        "seed",
        "stop_on_empty_dataset",
        "rerandomize_each_iteration",
    )
    starts_with(ps.Dataset.choose_from_datasets, "datasets", "choice_dataset", "stop_on_empty_dataset")
    starts_with(ps.Dataset.rejection_resample, "class_func", "target_dist", "initial_dist", "seed")
    starts_with(ps.Dataset.list_files, "file_pattern", "shuffle", "seed")
    reading = ("filenames", "compression_type", "buffer_size", "num_parallel_reads")
    for reader in (ps.TFRecordDataset, ps.TextLineDataset, ps.JsonLinesDataset):
        starts_with(reader, *reading)
    around = ("header_bytes", "footer_bytes", "buffer_size", "compression_type", "num_parallel_reads")
    starts_with(ps.FixedLengthRecordDataset, "filenames", "record_bytes", *around)
    fields = ("header", "field_delim", "use_quote_delim", "na_value", "select_cols", "exclude_cols")
    starts_with(ps.experimental.CsvDataset, "filenames", "record_defaults", "compression_type", "buffer_size", *fields)
    starts_with(ps.experimental.SqlDataset, "driver_name", "data_source_name", "query", "output_types")
