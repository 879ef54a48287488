"""Copies to a CUDA device: in which order streams and events are asked for, by a stand-in that writes it down.

What it cannot show is that CUDA does what it is asked; that needs a device (the last test).
"""

import contextlib
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import penstock as ps

torch = pytest.importorskip("torch")

from penstock.adaptors.torch import CudaCopies, Tensors, TorchLoader  # noqa: E402


class Tensor:
    """A tensor that says what is done to it; `where` goes host, pinned, device."""

    def __init__(self, log, array, where="host", dtype="own", device=None):
        self.log, self.array, self.where, self.dtype, self.device = log, array, where, dtype, device

    def pin_memory(self):
        self.log.append("pin")
        return Tensor(self.log, self.array, "pinned")

    def is_floating_point(self):
        return self.array.dtype.kind == "f"

    def to(self, target, non_blocking=False):
        if isinstance(target, torch.device):
            self.log.append(f"copy from {self.where}, waiting: {not non_blocking}")
            return Tensor(self.log, self.array, "device", device=target)
        self.log.append(f"cast on {self.where}")
        return Tensor(self.log, self.array, self.where, target)

    def record_stream(self, stream):
        self.log.append(f"used by {stream.name}")


class Stream:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def wait_event(self, event):
        self.log.append(f"{self.name} waits for {event.of}")


class FakeCuda:
    def __init__(self, log):
        self.log = log
        self.main = Stream(log, "step")
        self.chosen = threading.local()

    def is_available(self):
        return True

    def device_count(self):
        return 2

    def current_device(self):
        return getattr(self.chosen, "device", 0)  # of a thread, as CUDA's

    def Stream(self, device):
        return Stream(self.log, "side")

    def Event(self):
        def record(stream):
            self.log.append(f"event on {stream.name}")
            event.of = stream.name

        event = SimpleNamespace(record=record, of=None)
        return event

    def current_stream(self, device):
        return self.main

    @contextlib.contextmanager
    def device(self, device):
        yield

    @contextlib.contextmanager
    def stream(self, stream):
        self.log.append(f"{stream.name} begins")
        yield
        self.log.append(f"{stream.name} ends")


def fake_torch(log):
    return SimpleNamespace(
        cuda=FakeCuda(log),
        from_numpy=lambda array: Tensor(log, array),
        Tensor=Tensor,
        device=torch.device,
        dtype=torch.dtype,
        float16=torch.float16,
    )


def test_a_batch_is_pinned_copied_aside_and_waited_for_by_the_stream_alone():
    log = []
    fake = fake_torch(log)
    copies = CudaCopies(fake, Tensors(fake, torch.float16, ["id"], None), torch.device("cuda"), pin=True)
    copied = copies.start({"x": np.zeros(2), "label": np.zeros(2, np.int64), "id": np.array([b"a"], object)})
    assert log == [
        "side begins",
        "pin",
        "copy from pinned, waiting: False",
        "cast on device",
        "pin",
        "copy from pinned, waiting: False",
        "event on side",
        "side ends",
    ]
    log.clear()
    batch = copies.finish(copied)
    assert log == ["step waits for side", "used by step", "used by step"]
    assert batch["x"].where == batch["label"].where == "device"
    assert batch["x"].dtype == torch.float16
    assert batch["id"].tolist() == [b"a"]


def test_lists_of_tensors_are_copied_and_used_one_by_one():
    log = []
    fake = fake_torch(log)
    copies = CudaCopies(fake, Tensors(fake, None, (), None, "list"), torch.device("cuda"), pin=False)
    batch = copies.finish(copies.start({"x": ps.RaggedTensor(np.zeros(3), [0, 1, 3])}))
    assert [tensor.where for tensor in batch["x"]] == ["device", "device"]
    assert log[-3:] == ["step waits for side", "used by step", "used by step"]


def test_memory_that_is_not_pinned_is_copied_while_waiting():
    log = []
    fake = fake_torch(log)
    CudaCopies(fake, Tensors(fake, None, (), None), torch.device("cuda"), pin=False).start(np.zeros(2))
    assert log == ["side begins", "copy from host, waiting: True", "event on side", "side ends"]


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_every_batch_arrives_once_and_states_count_what_was_given(prefetch):
    ds = ps.Dataset.range(20).shuffle(20).batch(3)

    def loader():
        fake = fake_torch([])
        return TorchLoader(ds, fake, Tensors(fake, None, (), None), device="cuda", pin_memory="auto", prefetch=prefetch)

    whole = [tensor.array.tolist() for tensor in loader()]
    assert whole == [batch.tolist() for batch in ds.iterator(epoch=0)]
    for given in range(len(whole)):
        one, again = loader(), loader()
        batches = iter(one)
        for _ in range(given):
            next(batches)
        again.load_state_dict(one.state_dict())
        assert [tensor.array.tolist() for tensor in again] == whole[given:]


def test_cuda_is_the_current_device_of_the_thread_that_iterates():
    """As `torch.cuda.set_device(local_rank)` says; the thread that copies ahead would take the first one."""
    log = []
    fake = fake_torch(log)
    loader = TorchLoader(
        ps.Dataset.range(2).batch(2), fake, Tensors(fake, None, (), None), device="cuda", pin_memory="auto", prefetch=1
    )
    assert next(iter(loader)).device == torch.device("cuda:0")
    fake.cuda.chosen.device = 1
    assert next(iter(loader)).device == torch.device("cuda:1")


def test_a_device_that_is_not_there_is_said_at_once():
    fake = fake_torch([])
    with pytest.raises(ps.errors.FailedPreconditionError, match=r"'cuda:2' was asked for, and torch finds 2 CUDA"):
        TorchLoader(
            ps.Dataset.range(2), fake, Tensors(fake, None, (), None), device="cuda:2", pin_memory="auto", prefetch=1
        )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_device():
    ds = ps.Dataset.range(64).map(lambda x: np.full((64, 1024), x, np.float32)).batch(8)
    batches = list(ds.to_torch("cuda", dtype=torch.bfloat16, prefetch=3))
    torch.cuda.synchronize()
    assert [batch[:, 0, 0].tolist() for batch in batches] == [list(range(i, i + 8)) for i in range(0, 64, 8)]
    assert all(bool((batch == batch[:, :1, :1]).all()) for batch in batches)
