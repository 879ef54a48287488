"""Two ranks of torch.distributed: parts that are disjoint and equally long, and data sets that are compared."""

import json
import subprocess
import sys
import textwrap

import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import FailedPreconditionError

pytest.importorskip("torch")

SCRIPT = """
import json, sys, warnings
import torch.distributed as dist
import penstock as ps

rank, place = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
found = {}

loader = ps.Dataset.range(11).shuffle(11).batch(2).prefetch(1).to_torch(shard="rank")
found["epochs"] = [[batch.tolist() for batch in loader] for _ in range(2)]
found["length"] = len(loader)

other = ps.Dataset.range(11).shuffle(11, seed=rank).batch(2).to_torch(shard="rank")
try:
    next(iter(other))
except ps.errors.FailedPreconditionError as error:
    found["error"] = str(error)

late = ps.Dataset.range(4).to_torch(shard="rank")
late.set_epoch(rank)
try:
    next(iter(late))
except ps.errors.FailedPreconditionError as error:
    found["epoch"] = str(error)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ps.Dataset.range(4).to_torch()
    ps.Dataset.range(4).to_torch(shard=False)
    ps.Dataset.range(4).shard(2, rank).to_torch()
found["warned"] = [(str(one.message), one.filename == __file__) for one in caught]
dist.barrier()
dist.destroy_process_group()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    script = folder / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    running = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(folder / "meeting")], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        printed = [process.communicate(timeout=120)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0]
    return [json.loads(text.splitlines()[-1]) for text in printed]


def test_parts_are_disjoint_and_equally_long(ranks):
    assert [one["length"] for one in ranks] == [3, 3]
    for epoch in range(2):
        parts = [[x for batch in one["epochs"][epoch] for x in batch] for one in ranks]
        assert [len(part) for part in parts] == [5, 5]
        assert len({*parts[0], *parts[1]}) == 10
    assert ranks[0]["epochs"][0] != ranks[0]["epochs"][1]


def test_different_data_sets_are_found_at_the_first_step(ranks):
    assert ranks[0]["error"] == ranks[1]["error"]
    assert_golden("torch_ranks_differ", ranks[0]["error"])


def test_different_epochs_are_found(ranks):
    assert_golden("torch_ranks_epochs", ranks[1]["epoch"])


def test_the_same_elements_everywhere_are_warned_of_once(ranks):
    assert ranks[0]["warned"] == ranks[1]["warned"]
    ((message, here),) = ranks[0]["warned"]
    assert here
    assert_golden("torch_ranks_warning", message)


def test_ranks_that_were_announced_and_did_not_meet(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(FailedPreconditionError) as caught:
        ps.Dataset.range(4).to_torch(shard="rank")
    assert_golden("argument_torch_no_group", str(caught.value))


def test_one_process_reads_everything():
    assert [int(x) for x in ps.Dataset.range(3).to_torch(shard="rank")] == [0, 1, 2]
