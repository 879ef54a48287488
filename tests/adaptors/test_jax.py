"""to_jax: arrays that nothing is written under, under shardings, and checkpoints by Orbax."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import InvalidArgumentError, MissingDependencyError, PenstockError

jax = pytest.importorskip("jax")


def test_elements_become_arrays_in_the_same_nest():
    ds = ps.Dataset.range(3).map(lambda x: (x / 2, {"label": x, "id": str(x)})).batch(2)
    x, rest = next(iter(ds.to_jax(as_numpy="1.id")))
    assert isinstance(x, jax.Array)
    assert isinstance(rest["label"], jax.Array)
    assert (x.tolist(), rest["label"].tolist(), rest["id"].tolist()) == ([0.0, 0.5], [0, 1], [b"0", b"1"])


@pytest.mark.parametrize("kept", ["fresh", "cached", "sliced"])
def test_all_batches_of_a_pass_may_be_kept(kept):
    """Batches of 64 KB and more are aligned, so that JAX lays its arrays over them: memory must not be used again."""
    ds = ps.Dataset.range(12).map(lambda x: np.full(1 << 15, x, np.float32)).batch(2).prefetch(2)
    ds = {"fresh": ds, "cached": ds.cache(), "sliced": ds.map(lambda x: x[:, 1:])}[kept]
    for _ in range(2):
        kept_arrays = []
        doubled = []
        for batch in ds.to_jax():
            kept_arrays.append(batch)
            doubled.append(jax.jit(lambda x: x * 2)(batch))
        assert [np.unique(np.asarray(x)[0]).tolist() for x in kept_arrays] == [[i] for i in range(0, 12, 2)]
        assert [np.unique(np.asarray(x)[1]).tolist() for x in doubled] == [[2 * i] for i in range(1, 12, 2)]


def test_an_array_of_the_user_may_be_written_to_afterwards():
    values = np.zeros((2, 1 << 15), np.float32)
    (batch,) = ps.Dataset.from_tensors(values).to_jax()
    copied = np.array(batch)
    values[:] = 1
    assert np.array_equal(np.asarray(batch), copied)


def test_passes_are_epochs_and_a_state_goes_on():
    ds = ps.Dataset.range(10).shuffle(10).batch(3)
    loader = ds.to_jax()
    batches = iter(loader)
    first = next(batches).tolist()
    again = ds.to_jax()
    again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert [first, *(batch.tolist() for batch in again)] == [batch.tolist() for batch in ds.iterator(epoch=0)]
    assert len(loader) == 4


def test_orbax_keeps_the_state_beside_the_model(tmp_path):
    ocp = pytest.importorskip("orbax.checkpoint")
    from penstock.jax import CheckpointRestore, CheckpointSave

    ds = ps.Dataset.range(20).shuffle(20).batch(4)
    loader = ds.to_jax()
    batches = iter(loader)
    next(batches), next(batches)
    again = ds.to_jax()
    with ocp.CheckpointManager(tmp_path / "checkpoints") as manager:
        model = ocp.args.StandardSave({"w": np.ones(3)})
        manager.save(2, args=ocp.args.Composite(model=model, data=CheckpointSave(loader)))
        manager.wait_until_finished()
        found = manager.restore(2, args=ocp.args.Composite(data=CheckpointRestore(again)))
    assert found["data"] is again
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]


SHARDED = """
import jax, json, numpy as np
import penstock as ps
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))
rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
ds = ps.Dataset.range(16).map(lambda x: {"x": x * np.ones(3, np.float32), "n": x}).batch(8)
found = {"devices": len(jax.devices()), "batches": []}
for batch in ds.to_jax({"x": rows, "n": everywhere}):
    assert batch["x"].sharding == rows and batch["n"].sharding == everywhere
    shards = {shard.device.id: shard.data[:, 0].tolist() for shard in batch["x"].addressable_shards}
    found["batches"].append([batch["x"].shape, shards, batch["n"].tolist()])
try:
    list(ps.Dataset.range(6).map(lambda x: {"x": x}).batch(3).to_jax(rows))
except ps.errors.InvalidArgumentError as error:
    found["error"] = error.message.split(": ")[0].split(" laid")[0], error.hint
one = jax.devices()[2]
found["one"] = [next(iter(ds.to_jax(one)))["x"].devices() == {one}]
print(json.dumps(found))
"""


def test_global_arrays_under_a_sharding(tmp_path):
    script = tmp_path / "sharded.py"
    script.write_text(
        textwrap.dedent(
            "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'\n"
            "os.environ['JAX_PLATFORMS'] = 'cpu'\n" + SHARDED
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["devices"] == 4
    assert found["one"] == [True]
    assert found["batches"] == [
        [[8, 3], {str(d): [b + 2.0 * d, b + 2.0 * d + 1] for d in range(4)}, list(range(b, b + 8))] for b in (0, 8)
    ]
    assert_golden("argument_jax_sharding_does_not_fit", "\n".join(found["error"]))


WRONG = {
    "bytes": (lambda: ps.Dataset.from_tensor_slices({"id": ["a"]}), {}),
    "ragged": (lambda: ps.Dataset.range(4).map(lambda x: {"n": np.zeros(x)}).ragged_batch(2), {}),
    "sharding": (lambda: ps.Dataset.range(4), {"sharding": "data"}),
    "sharding_column": (lambda: ps.Dataset.range(4).map(lambda x: {"x": x}), {"sharding": {"y": jax.devices()[0]}}),
    "large_integers": (lambda: ps.Dataset.from_tensor_slices({"id": [1, 1 << 40]}).batch(2), {}),
    "prefetch": (lambda: ps.Dataset.range(4), {"prefetch": 0}),
    "shard": (lambda: ps.Dataset.range(4), {"shard": "rank"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_teach(name):
    make, arguments = WRONG[name]
    with pytest.raises(PenstockError) as caught:
        next(iter(make().to_jax(**arguments)))
    assert_golden(f"argument_jax_{name}", str(caught.value))


def test_integers_that_fit_are_narrowed_and_64_bits_kept_where_allowed():
    ds = ps.Dataset.from_tensors(np.array([-(2**31), 2**31 - 1]))
    assert next(iter(ds.to_jax())).tolist() == [-(2**31), 2**31 - 1]
    with jax.enable_x64(True):
        assert next(iter(ps.Dataset.from_tensors(np.array([1 << 40])).to_jax())).tolist() == [1 << 40]


def test_what_is_put_ahead_is_put_as_the_thread_that_iterates_says(monkeypatch):
    """As on an accelerator, where another thread puts it; what `with` sets holds for one thread."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    loader = ps.Dataset.from_tensors(np.array([1 << 40])).to_jax()
    with jax.enable_x64(True):
        batch = next(iter(loader))
        assert batch.tolist() == [1 << 40]
    with pytest.raises(ps.errors.InvalidArgumentError, match="beyond 32 bits"):
        next(iter(loader))


def test_several_processes_compare_their_data_sets(monkeypatch):
    """What multihost_utils gathers, for two processes in one."""
    from penstock.adaptors.jax import agree
    from penstock.adaptors.loader import identity

    mine, other = (identity(ps.Dataset.range(n)._plan, (0,), 0, n) for n in (4, 5000))
    texts = [np.frombuffer(json.dumps(one).encode(), np.uint8) for one in (mine, other)]

    class Utils:
        @staticmethod
        def process_allgather(array):
            if array.dtype == np.int32:
                return np.array([[text.size] for text in texts])
            return np.stack([np.pad(text, (0, array.size - text.size)) for text in texts])

    monkeypatch.setitem(sys.modules, "jax.experimental.multihost_utils", Utils)
    with pytest.raises(PenstockError, match=r"Ranks 0 and 1 do not read the same data set: step 1"):
        agree(mine)
    texts[1] = texts[0]
    agree(mine)


def test_each_process_reads_its_part():
    ds = ps.Dataset.range(9).batch(2)
    assert [batch.tolist() for batch in ds.to_jax(shard=(2, 1))] == [[1, 3], [5, 7]]
    assert [batch.tolist() for batch in ds.to_jax(shard="process")] == [batch.tolist() for batch in ds]


def test_without_jax_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingDependencyError) as caught:
        ps.Dataset.range(2).to_jax()
    assert_golden("missing_jax", str(caught.value))


def test_penstock_jax_names_what_it_has():
    import penstock.jax

    with pytest.raises(InvalidArgumentError, match="CheckpointSave"):
        penstock.jax.CheckpointSafe  # noqa: B018
