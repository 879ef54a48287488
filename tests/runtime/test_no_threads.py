"""The system refuses to start a thread: each executor that needs one raises an error with a remedy."""

import threading

import pytest

import penstock as ps


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_no_thread_is_an_error_that_says_what_to_do(executor, monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    ds = (
        ps.Dataset.range(50)
        .map(lambda x: x + 1, num_parallel_calls=2)
        .with_options(ps.Options(threading=ps.ThreadingOptions(private_threadpool_size=2)))
    )
    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(ps.errors.ResourceExhaustedError, match="cannot start another thread"):
        list(ds.iterator(executor=executor))
