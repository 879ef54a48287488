"""The advice of lint(), word for word, and cases without advice."""

import random
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from tests.golden.golden import assert_golden
from tests.strategies import pipelines

import penstock as ps
from penstock.compat import tf
from penstock.demo.pipelines import naive, pipelined
from penstock.demo.settings import Settings
from penstock.profiler.lint.driver import CHECKS
from penstock.testing import assert_same_elements

FEATURES = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}


MEAN = np.array([0.4, 0.5, 0.6])


def augment(x):
    return x + np.random.uniform()


def keyed(x):
    return x + np.random.default_rng(ps.element_key()).uniform()


GENERATOR = random.Random(1)


def drawing(x):
    return x + GENERATOR.random()


def split(ds, count=100):
    """Split off elements for validation; training uses the rest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.RandomnessWarning)
        kept, rest = ds.take(count), ds.skip(count)
    assert rest.lint()
    return kept


def images(folder, labels="inferred"):
    """Write three images of each of two classes, which lint does not read."""
    root = folder.parent / "images"
    for kind in ("cat", "dog"):
        for number in range(3):
            (root / kind / f"{number}.png").parent.mkdir(parents=True, exist_ok=True)
            (root / kind / f"{number}.png").touch()
    return ps.ImageFolderDataset(root, labels=labels)


def prepare(record):
    row = ps.io.parse_single_example(record, FEATURES)
    image = ps.image.decode_jpeg(row["image"], channels=3)
    return ps.image.resize(image, (224, 224)) / np.float32(255), row["label"]


def logged(record):
    print(record)
    return prepare(record)


def load(path):
    return Path(path.decode()).read_bytes()


def branching(x):
    return x if int(x) % 2 else -x


def fraction(x):
    """Build a function that is called per element, and might get a batch."""
    return np.modf(x)[0]


def scaled_down(x):
    if x.max() > 1:
        x = x / 255
    return np.modf(x)[0]


def named_a(row):
    return row["name"].strip() == "a"


def scaled(image, label):
    return image / 255.0, label


def labelled(image, label):
    return label > 3


def decoded(image, label):
    return ps.image.decode_jpeg(image, channels=3), label


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write six TFRecord files of 40 records to their own folder."""
    found = tmp_path_factory.mktemp("records")
    for i in range(6):
        with ps.io.TFRecordWriter(found / f"part-{i}.tfrecord") as writer:
            for _ in range(40):
                writer.write(b"a record")
    return found


def names(folder, pattern="part-*"):
    return ps.Dataset.list_files(folder / pattern)


def records(folder, parallel=ps.AUTOTUNE):
    return names(folder).interleave(ps.TFRecordDataset, cycle_length=4, num_parallel_calls=parallel)


def with_labels(labels):
    return ps.Dataset.from_tensor_slices((np.zeros((len(labels), 2)), labels))


def numbers(count=1000):
    return ps.Dataset.range(count)


def pictures(count):
    """Build images as uint8 arrays, in memory only once."""
    return ps.Dataset.from_tensor_slices(np.broadcast_to(np.zeros((64, 64, 3), np.uint8), (count, 64, 64, 3)))


def rows_of_numbers():
    return ps.Dataset.from_tensor_slices(np.ones((50, 3), np.float32))


def without_moves():
    return ps.Options(experimental_optimization={"shuffle_before_map": False})


# Each case gets exactly the advice of the check before the dot.
ADVISED = {
    "cache_random.map": lambda folder: numbers().map(augment, num_parallel_calls=4).batch(10).cache(),
    "cache_random.filter": lambda folder: numbers().filter(lambda x: random.random() < 0.5).cache(),
    "cache_shuffled": lambda folder: numbers().shuffle(1000, seed=3).batch(10).cache(),
    "cache_shuffled.all": lambda folder: numbers().shuffle(ps.ALL).cache(),
    "cache_cut": lambda folder: numbers().cache().batch(10).take(5),
    "cache_cut.unknown": lambda folder: records(folder).cache().take(100),
    "cache_cut.shuffled": lambda folder: numbers().filter(branching).cache().shuffle(100).take(5),
    "cache_endless": lambda folder: numbers().repeat().map(branching).cache(),
    "cache_endless.source": lambda folder: ps.Dataset.counter().cache(),
    "cache_repeated": lambda folder: numbers().repeat(3).cache(),
    "cache_grown": lambda folder: pictures(5000).map(lambda x: x / np.float32(255)).cache(),
    "shuffle_epochs": lambda folder: numbers().repeat().map(branching).shuffle(1000).batch(4),
    "shuffle_batches": lambda folder: numbers().batch(10).shuffle(100, seed=5),
    "shuffle_decoded": lambda folder: records(folder).map(logged, ps.AUTOTUNE).shuffle(1000).batch(8),
    "shuffle_decoded.sizes": lambda folder: (
        pictures(3000).map(lambda x: x.astype(np.float64)).filter(lambda x: True).shuffle(1000)
    ),
    "shuffle_decoded.switched_off": lambda folder: (
        records(folder).map(prepare, ps.AUTOTUNE).shuffle(1000).with_options(without_moves())
    ),
    "shuffle_small.one": lambda folder: records(folder).shuffle(1),
    "shuffle_small.files": lambda folder: ps.TFRecordDataset(sorted(folder.glob("part-*"))).shuffle(10),
    "shuffle_small.names": lambda folder: ps.TFRecordDataset(names(folder)).map(len).shuffle(10),
    "vectorise_batch.exact": lambda folder: numbers().map(lambda x: np.modf(x / 1000)[0]).batch(32),
    "vectorise_batch.last_axis": lambda folder: rows_of_numbers().map(lambda v: fraction(np.sort(v))).batch(8),
    "no_prefetch": lambda folder: ps.TFRecordDataset(folder / "part-0.tfrecord").batch(8),
    "no_prefetch.switched_off": lambda folder: (
        records(folder).batch(8).with_options(ps.Options(experimental_optimization={"inject_prefetch": False}))
    ),
    "no_prefetch.seen": lambda folder: records(folder).map(printed).batch(8),
    "sequential_map.no_module": lambda folder: names(folder).map(of_no_module()).batch(8).prefetch(1),
    "text_as_str": lambda folder: ps.Dataset.from_tensor_slices({"name": ["a", "b"]}).filter(named_a),
    "text_as_str.in": lambda folder: names(folder).filter(lambda name: name in ("a", "b")),
    "text_as_str.spelled": lambda folder: names(folder).map(lambda name: f"{name}.png"),
    "lossy_operands": lambda folder: tf.data.Dataset.range(9).map(lambda x: x * np.float64(0.5)),
    "widened_floats": lambda folder: ps.Dataset.zip((pictures(9), numbers(9))).map(scaled),
    "widened_floats.ufunc": lambda folder: pictures(9).map(lambda x: np.divide(x, 255)),
    "widened_floats.behind": lambda folder: pictures(9).map(lambda x: np.clip(1 - x / 255.0, 0, 1)),
    "widened_floats.index": lambda folder: ps.Dataset.zip((pictures(9), numbers(9))).map(
        lambda x, y: (x[..., None] / 255.0, y)
    ),
    "widened_floats.astype": lambda folder: pictures(9).map(lambda x: x.astype(float)),
    "widened_floats.mean": lambda folder: pictures(9).map(lambda x: np.mean(x, axis=-1)),
    "widened_floats.function": lambda folder: pictures(9).map(lambda x: np.where(x > 3, x, 0.5)),
    "widened_floats.reverse": lambda folder: pictures(9).map(lambda x: 255.0 / x),
    "widened_floats.below": lambda folder: pictures(9).map(lambda x: np.divide(1, x)),
    "widened_floats.array": lambda folder: pictures(9).map(lambda x: x - MEAN),
    "random_unkeyed": lambda folder: numbers().map(drawing).batch(10),
    "random_unkeyed.branch": lambda folder: numbers().map(lambda x: x if x else x + GENERATOR.random()),
    "random_unkeyed.filter": lambda folder: numbers().filter(lambda x: GENERATOR.random() < 0.5),
    "random_unkeyed.predicate": lambda folder: numbers().take_while(lambda x: random.random() < 0.5),
    "shuffle_split": lambda folder: numbers().shuffle(1000).skip(100),
    "shuffle_split.take": lambda folder: split(numbers().filter(branching).shuffle(1000)),
    "sorted_split": lambda folder: images(folder).map(lambda content, label: label).skip(4),
    "sorted_split.take": lambda folder: split(images(folder), 4),
    "sorted_split.arrays": lambda folder: with_labels(np.repeat(np.arange(3), 4)).skip(8),
    "uneven_shards": lambda folder: numbers(103).shard(4, 1).batch(13, drop_remainder=True),
    "uneven_shards.elements": lambda folder: numbers(103).shard(4, 1),
    "uneven_shards.files": lambda folder: (
        names(folder).shard(8, 7).interleave(ps.TFRecordDataset, 1, num_parallel_calls=2)
    ),
    "sequential_map": lambda folder: names(folder).map(load).batch(8),
    "sequential_map.compressed": lambda folder: records(folder).map(lambda x: zlib.compress(x)),
    "sequential_interleave": lambda folder: records(folder, None).batch(8),
    "one_file": lambda folder: names(folder, "part-0*").interleave(ps.TFRecordDataset, num_parallel_calls=2),
    "idle_cycle": lambda folder: names(folder).interleave(ps.TFRecordDataset, 10, num_parallel_calls=2),
    "late_shard.files": lambda folder: records(folder).shuffle(100).shard(4, 1),
    "late_shard.map": lambda folder: numbers().map(branching).batch(4).shard(2, 0),
    "late_skip": lambda folder: ps.Dataset.list_files(folder / "part-*", shuffle=False).map(load, 2).skip(2),
    "late_filter": lambda folder: ps.Dataset.from_tensor_slices(([b"jpeg"], [1])).map(decoded, 2).filter(labelled),
    "idle_prefetch.twice": lambda folder: numbers().prefetch(2).prefetch(ps.AUTOTUNE),
    "idle_prefetch.between": lambda folder: records(folder).map(len, 2).prefetch(8).batch(4),
    "global_shuffle": lambda folder: numbers().map(branching).shuffle(100, seed=7, reshuffle_each_iteration=False),
}


@pytest.mark.parametrize("case", ADVISED)
def test_advice(case, folder):
    (advice,) = ADVISED[case](folder).lint()
    assert advice.code == case.partition(".")[0].replace("_", "-")
    assert advice.concern in ("data", "speed", "memory")
    assert advice.where is not None
    assert advice.where.startswith("test_lint.py:")
    assert_golden(f"lint_{case.replace('.', '_')}", str(advice))


def test_every_check_has_a_case_and_a_sentence():
    checks = [check for group in CHECKS.values() for check in group]
    assert {check.__name__ for check in checks} == {case.partition(".")[0] for case in ADVISED}
    for check in checks:
        assert check.__doc__.endswith(".")


def printed(record):
    print(record)
    return record


def of_no_module():
    """Build a function like `exec` in a dict of its own."""
    names = {"zlib": zlib}
    exec("def compressed(x): return zlib.compress(x)", names)
    return names["compressed"]


def stepwise(x):
    total = 0
    for i in range(3):
        total = total + x * i
    return total if x > 2 else -total


def counting(path):
    global CALLS
    CALLS = path
    return load(path)


def seeded(x):
    return x + np.random.default_rng(int(x)).random() + random.Random(int(x)).random()


# Intended pipelines that resemble an advised one.
QUIET = {
    "random behind the cache": lambda folder: numbers().cache().map(keyed).batch(10),
    "split in front of the shuffle": lambda folder: numbers().skip(100).shuffle(1000),
    "a part of each epoch": lambda folder: numbers().filter(branching).shuffle(1000).take(100),
    "split in one order": lambda folder: numbers().shuffle(1000, reshuffle_each_iteration=False).skip(100).prefetch(50),
    "a look at sorted images": lambda folder: images(folder).take(2),
    "sorted images, shuffled before the split": lambda folder: images(folder).shuffle(ps.ALL, 1, False).skip(4),
    "images without labels": lambda folder: images(folder, None).skip(4),
    "images whose labels are mixed": lambda folder: images(folder, [0, 1, 0, 1, 0, 1]).skip(4),
    "even batches of uneven shards": lambda folder: numbers(103).shard(4, 1).batch(13),
    "uneven shards for ever": lambda folder: numbers(103).shard(4, 1).repeat(),
    "seeded by the engine": lambda folder: numbers().map(augment).filter(lambda x: random.random() < 0.5),
    "draws that do not matter": lambda folder: numbers().map(drawing).with_options(ps.Options(deterministic=False)),
    "seeded by the element": lambda folder: numbers().map(seeded).cache(),
    "shuffled again behind the cache": lambda folder: numbers().shuffle(1000).cache().shuffle(1000),
    "one order on purpose": lambda folder: numbers().shuffle(1000, reshuffle_each_iteration=False).cache(),
    "names in another order, then a cache": lambda folder: records(folder).cache().batch(8).prefetch(1),
    "take of all": lambda folder: numbers().cache().take(1000),
    "take of more turns": lambda folder: numbers().cache().repeat().take(5000),
    "take in front of the cache": lambda folder: numbers().repeat().take(10).cache(),
    "a small cache that grew": lambda folder: pictures(5).map(lambda x: x / np.float32(255)).cache(),
    "float64 by name": lambda folder: pictures(5).map(lambda x: x.astype(np.float64) / 3),
    "float64 as text": lambda folder: pictures(5).map(lambda x: np.divide(x, 255).astype("float64")),
    "float64 of the data": lambda folder: ps.Dataset.from_tensor_slices(np.ones((5, 3))).map(
        lambda x: np.clip(x, 0, 1)
    ),
    "float64 of int64": lambda folder: ps.Dataset.from_tensor_slices(np.ones((5, 3), int)).map(
        lambda x: x.astype(float)
    ),
    "one number of float64": lambda folder: pictures(5).map(lambda x: (x, np.mean(x))),
    "float64 on the way": lambda folder: pictures(5).map(lambda x: np.divide(x, 255).astype(np.float32)),
    "a cache of decoded pictures": lambda folder: records(folder).map(prepare, ps.AUTOTUNE).cache(),
    "shuffle, then repeat": lambda folder: numbers().shuffle(1000).repeat(3),
    "batches of shuffled elements": lambda folder: numbers().shuffle(1000).batch(10).shuffle(100),
    "a rewrite moves the shuffle": lambda folder: records(folder).map(prepare, ps.AUTOTUNE).shuffle(1000).batch(8),
    "a buffer of a few pictures": lambda folder: records(folder).map(logged, ps.AUTOTUNE).shuffle(16).batch(8),
    "one file, read to its end": lambda folder: ps.TFRecordDataset(folder / "part-0.tfrecord").shuffle(10),
    "a buffer larger than a file": lambda folder: ps.TFRecordDataset(sorted(folder.glob("*"))).shuffle(100),
    "a split of mixed labels": lambda folder: with_labels(np.arange(12) % 3).skip(8),
    "a split of numbered rows": lambda folder: with_labels(np.arange(12)).skip(8),
    "a missing file": lambda folder: ps.TFRecordDataset([folder / "none", folder / "nothing"]).shuffle(10),
    "a branch, which a batch has not": lambda folder: numbers().map(branching, 4).batch(32),
    "sums over the row": lambda folder: rows_of_numbers().map(lambda v: fraction(v.cumsum())).batch(8),
    "a softmax of the row": lambda folder: (
        rows_of_numbers().map(lambda v: fraction(np.exp(v) / np.exp(v).sum())).batch(8)
    ),
    "transformed by column": lambda folder: rows_of_numbers().map(lambda v: fraction(np.sort(v, axis=0))).batch(8),
    "written to a file": lambda folder: (
        rows_of_numbers().map(lambda v: np.save(folder / "v", v) or fraction(v)).batch(8)
    ),
    "cut to a length, which a batch has": lambda folder: rows_of_numbers().map(lambda v: fraction(v)[:16]).batch(32),
    "scaled if it has to be": lambda folder: rows_of_numbers().map(scaled_down).batch(8),
    "a helper that scales if it has to": lambda folder: (
        rows_of_numbers().map(lambda v: fraction(scaled_down(v))).batch(8)
    ),
    "scaled by its largest value, if that is large": lambda folder: (
        rows_of_numbers().map(lambda v: fraction(v / np.maximum(v.max(), 50))).batch(8)
    ),
    "vectorised by the engine": lambda folder: numbers().map(lambda x: x * 2 + 1).batch(32),
    "a loop": lambda folder: numbers().map(stepwise).batch(32),
    "not numpy": lambda folder: numbers().map(lambda x: len(str(x))).batch(32),
    "batches too small to pay": lambda folder: numbers().map(branching).batch(2),
    "in memory": lambda folder: numbers().map(lambda x: x * 2).batch(8),
    "a rewrite makes the map parallel": lambda folder: records(folder).map(prepare).batch(8),
    "a map that keeps state": lambda folder: names(folder).map(counting),
    "a default cycle over few files": lambda folder: names(folder).interleave(ps.TFRecordDataset, num_parallel_calls=2),
    "an interleave of no files": lambda folder: numbers(5).interleave(lambda n: ps.Dataset.range(n), 8),
    "shards of files": lambda folder: (
        names(folder).shard(2, 0).interleave(ps.TFRecordDataset, 3, num_parallel_calls=2).shuffle(100)
    ),
    "a rewrite moves the shard": lambda folder: numbers().map(lambda x: x + 1).shard(4, 1),
    "one shard of one": lambda folder: numbers().batch(4).shard(1, 0),
    "shards of all, shuffled": lambda folder: numbers().shuffle(ps.ALL).shard(4, 1),
    "skip of what is cheap": lambda folder: numbers().map(branching).skip(3),
    "a filter that looks at the picture": lambda folder: (
        ps.Dataset.from_tensor_slices(([b"jpeg"], [1])).map(decoded, 2).filter(lambda image, label: image.sum() > 3)
    ),
    "a few large elements ahead": lambda folder: pictures(99).map(lambda x: x * 2).prefetch(2),
    "a few elements ahead that somebody sees": lambda folder: numbers().map(printed).prefetch(1),
    "some hundred elements ahead": lambda folder: numbers().map(lambda x: x * 2).prefetch(100),
    "windows of batches ahead": lambda folder: numbers().batch(4).map(lambda x: x * 2).prefetch(1),
    "prefetch behind the batch": lambda folder: records(folder).map(prepare, 2).batch(4).prefetch(2),
    "a buffer for all": lambda folder: numbers().shuffle(1000),
    "a shuffle of what has no numbers": lambda folder: numbers().filter(lambda x: x > 3).shuffle(10),
}


@pytest.mark.parametrize("case", QUIET)
def test_no_false_alarm(case, folder):
    assert QUIET[case](folder).lint() == ()


def test_good_pipelines_get_no_advice(folder):
    files = names(folder).interleave(ps.TFRecordDataset, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    mapped = files.map(prepare, num_parallel_calls=ps.AUTOTUNE)
    readme = mapped.cache().shuffle(1024, seed=7).batch(32, drop_remainder=True).prefetch(ps.AUTOTUNE)
    jpeg = mapped.shuffle(1024).batch(32).prefetch(ps.AUTOTUNE)
    folders = names(folder).map(load, num_parallel_calls=ps.AUTOTUNE).batch(6).prefetch(ps.AUTOTUNE)
    table = {"x": np.zeros((4, 2)), "label": np.zeros(4)}
    small = ps.Dataset.from_tensor_slices(table).map(lambda row: (row["x"] / 8, row["label"])).shuffle(4).batch(2)
    for dataset in (readme, jpeg, folders, small):
        assert dataset.lint() == ()
        assert "advice" not in dataset.explain()


def test_of_the_demonstration_the_naive_way_gets_advice(folder):
    files, settings = [str(path) for path in folder.iterdir()], Settings(seed=1, batch_size=8)
    assert pipelined(files, settings).lint() == ()
    assert "sequential-interleave" in {advice.code for advice in naive(files, settings).lint()}


# Advice does not change elements and order: the original calls, and the corrected calls.
SAME = {
    "sequential_interleave": lambda files: (
        files.interleave(ps.TFRecordDataset, 4),
        files.interleave(ps.TFRecordDataset, 4, num_parallel_calls=ps.AUTOTUNE),
    ),
    "idle_cycle": lambda files: (
        files.interleave(ps.TFRecordDataset, 10),
        files.interleave(ps.TFRecordDataset, 6),
    ),
    "late_skip": lambda files: (files.map(load).skip(2), files.skip(2).map(load)),
    "idle_prefetch": lambda files: (
        files.map(load, 2).prefetch(3).batch(4).prefetch(1),
        files.map(load, 2).batch(4).prefetch(3),
    ),
    "no_prefetch": lambda files: (files.map(len).batch(4), files.map(len).batch(4).prefetch(ps.AUTOTUNE)),
}


@pytest.mark.parametrize("name", SAME)
def test_mended_calls_give_the_same(name, tmp_path):
    for i in range(6):
        with ps.io.TFRecordWriter(tmp_path / f"part-{i}.tfrecord") as writer:
            for j in range(3 + i % 2):
                writer.write(bytes([65 + i]) * j)
    written, mended = SAME[name](names(tmp_path))
    assert_same_elements(list(written), list(mended))
    assert len(list(written)) > 1


def test_each_input_is_looked_at():
    left, right = numbers().repeat(2).cache(), numbers().shuffle(1)
    codes = {advice.code for advice in ps.Dataset.zip(left, right).lint()}
    assert codes == {"cache-repeated", "shuffle-small"}


def test_a_report_is_a_tuple_that_prints():
    report = numbers().shuffle(1).lint()
    assert isinstance(report, tuple)
    assert repr(report) == str(report) == str(report[0])
    assert repr(numbers().lint()) == "nothing to advise"


def test_explain_ends_with_advice():
    dataset = numbers().repeat(2).shuffle(1000)
    head, _, advice = dataset.explain().partition("\nadvice\n")
    assert head.startswith("plan")
    assert advice == "\n".join(f"  {line}" for line in str(dataset.lint()).splitlines())


@settings(max_examples=200)
@given(pipelines(most_steps=7))
def test_lint_never_fails_and_advises_the_same_again(pipeline):
    report = pipeline.dataset.lint()
    assert pipeline.dataset.lint() == report
    for advice in report:
        assert advice.mended.startswith((".", "ps."))
        assert "\n" not in advice.message


def test_the_one_order_that_is_written_out_has_each_argument_once():
    found = [str(one) for one in numbers().shuffle(1000, seed=3).skip(100).lint() if one.code == "shuffle-split"]
    assert ".shuffle(1000, seed=3, reshuffle_each_iteration=False)" in " ".join(found[0].split())


def test_who_gets_no_file_is_warned_of_it(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text("line\n")
    with pytest.warns(ps.errors.ShardWarning, match=r"shard\(4, 3\) has no file: it distributes 3 files to 4"):
        assert list(names(tmp_path, "*").shard(4, 3).interleave(ps.TextLineDataset)) == []
    listed = ps.Dataset.from_tensor_slices([str(tmp_path / "a")])
    with pytest.warns(ps.errors.ShardWarning, match=r"shard\(2, 1\) has no file: it distributes 1 file to 2"):
        assert list(listed.shard(2, 1).repeat(2).flat_map(ps.TextLineDataset)) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(listed.shard(3, 1)) == []  # the names are not known to be files
        assert len(list(names(tmp_path, "*").shard(4, 2).interleave(ps.TextLineDataset))) == 1
        assert list(ps.Dataset.range(3).shard(4, 3)) == []
