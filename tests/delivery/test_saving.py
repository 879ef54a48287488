"""Workers write saved data sets, and services find data sets by their ids."""

import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.delivery.simulated import Simulated
from tests.delivery.test_delivered import failing, numbered
from tests.delivery.test_local import alive, at_length, pids, slow
from tests.golden.golden import assert_golden
from tests.strategies import Pipeline, pipelines

import penstock as ps
from penstock.dataset import distributing
from penstock.delivery.window import KILLS
from penstock.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    PenstockError,
)
from penstock.testing import assert_same_elements

ROUNDS = max(int(os.environ.get("PENSTOCK_SERVICE", "5")) // 5, 1)


def saved(dataset, path, monkeypatch, **how):
    """Save through workers of one thread, some of which die."""
    monkeypatch.setattr(distributing, "_service", lambda *_, **__: Simulated(**how))
    ps.service.distributed_save(dataset, path)


@settings(max_examples=settings.default.max_examples // 8)
@given(pipelines(most_steps=4), st.integers(1, 3), st.integers(0, 9))
def test_what_workers_write_is_what_save_writes(pipeline: Pipeline, size, seed):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        here, there = Path(folder, "here"), Path(folder, "there")
        dataset = pickle.loads(pickle.dumps(pipeline.dataset))
        try:
            pipeline.dataset.save(here)
        except PenstockError as error:
            with pytest.raises(type(error)):
                saved(dataset, there, patch, size=size, seed=seed)
            assert not there.exists() or not list(there.glob("data-*"))
            return
        saved(dataset, there, patch, size=size, seed=seed, deaths=2)
        assert_same_elements(list(ps.Dataset.load(there)), list(ps.Dataset.load(here)))
        files = [path.name for path in there.glob("data-*/*")]
        assert len(files) == (there / "manifest.json").read_text().count(".arrow")


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    saved(ps.Dataset.range(3), tmp_path, monkeypatch)
    with pytest.raises(ValueError, match="no 3"):
        saved(ps.Dataset.range(9).map(failing), tmp_path, monkeypatch)
    assert [int(x) for x in ps.Dataset.load(tmp_path)] == [0, 1, 2]
    assert len(list(tmp_path.iterdir())) == 2
    saved(ps.Dataset.range(4).map(lambda x: {"a": x, "b": np.full(int(x), 2.0)}), tmp_path, monkeypatch)
    assert [len(x["b"]) for x in ps.Dataset.load(tmp_path)] == [0, 1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 2


def test_elements_of_other_kinds_are_refused(tmp_path, monkeypatch):
    kinds = ps.Dataset.range(40).map(lambda x: int(x) if x < 20 else "text")
    with pytest.raises(InvalidTypeError):
        saved(kinds, tmp_path, monkeypatch)


def test_saves_that_cannot_be_say_so(tmp_path):
    texts = []
    for wrong in (
        lambda: ps.service.distributed_save(ps.Dataset.range(3).repeat(), tmp_path),
        lambda: ps.service.distributed_save(ps.Dataset.range(3), tmp_path, compression="AUTO"),
        lambda: ps.service.distributed_save([1, 2], tmp_path),
    ):
        with pytest.raises((InvalidArgumentError, InvalidTypeError)) as caught:
            wrong()
        texts.append(str(caught.value))
    assert_golden("distributed-save-wrong", "\n\n".join(texts))


def kill_some(chance):
    def kill():
        victims = [pid for pid in pids() if alive(pid)]
        if victims:
            os.kill(chance.choice(victims), signal.SIGKILL)

    return kill


@pytest.mark.system
@at_length
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_workers_write_everything_once(seed, tmp_path):
    from penstock.service import saving

    chance = random.Random(seed)
    dataset = ps.Dataset.range(1000).shuffle(99).map(slow).map(numbered).batch(5)
    wanted = list(pickle.loads(pickle.dumps(dataset)))
    adopt, kill, kills = saving.SavedWriter.adopt, kill_some(chance), []

    def adopted(self, *what):
        if chance.random() < 0.5 and len(kills) < KILLS - 1:  # a range that kills more workers ends the iteration
            kills.append(kill())
        adopt(self, *what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving.SavedWriter, "adopt", adopted)
        ps.service.distributed_save(dataset, tmp_path, workers=chance.randrange(1, 4))
    assert_same_elements(list(ps.Dataset.load(tmp_path)), wanted)
    files = [path.name for path in tmp_path.glob("data-*/*")]
    assert len(files) == (tmp_path / "manifest.json").read_text().count(".arrow")


@pytest.fixture(scope="module")
def service():
    with ps.service.start(workers=1) as found:
        yield found


@pytest.mark.system
def test_a_registered_data_set_is_there_for_programs_without_its_code(service):
    offset = 7
    dataset = ps.Dataset.range(6).map(lambda x: x + offset).batch(2)
    name = ps.service.register_dataset(service, dataset)
    assert ps.service.register_dataset(service.address, dataset) == name
    assert ps.service.register_dataset(service, dataset, "named") == "named"
    assert service.status()["datasets"] == sorted([name, "named"])
    text = f"""
import penstock as ps
for number in range(2):
    ds = ps.service.from_dataset_id({service.address!r}, "named", "job", num_consumers=2, consumer_index=number)
    print([batch.tolist() for batch in ds.iterator(epoch=0)])
"""
    other = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert other.stdout == "[[7, 8], [11, 12]]\n[[9, 10]]\n"


@pytest.mark.system
def test_wrong_registrations_say_what_to_do(service, tmp_path):
    texts = []
    ps.service.register_dataset(service, ps.Dataset.range(4), "four")
    with (tmp_path / "open").open("w") as file:
        for wrong in (
            lambda: ps.service.register_dataset(service, ps.Dataset.range(5), "four"),
            lambda: ps.service.register_dataset(service, ps.Dataset.range(5), "../four"),
            lambda: ps.service.register_dataset(service, [1]),
            lambda: ps.service.register_dataset(service, ps.Dataset.range(5).map(lambda x: (x, file.name))),
            lambda: ps.service.register_dataset("unix:///nowhere", ps.Dataset.range(5)),
            lambda: ps.service.from_dataset_id(service, "five"),
            lambda: ps.service.from_dataset_id(service, "four", element_spec=ps.TensorSpec((), np.float32)),
        ):
            with pytest.raises(
                (InvalidArgumentError, InvalidTypeError, FailedPreconditionError, NotFoundError)
            ) as caught:
                wrong()
            texts.append(str(caught.value))
    known = [name for name in service.status()["datasets"] if name != "four"]
    text = "\n\n".join(texts)
    for name in known:
        text = text.replace(f", {name!r}", "").replace(f"{name!r}, ", "")
    assert_golden("service-registering-wrong", text)
