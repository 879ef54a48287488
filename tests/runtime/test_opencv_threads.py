"""A function that uses OpenCV finds its threads off, here and in worker processes, unless the user wants them."""

import pytest
from tests.system.child import run

pytestmark = pytest.mark.system

PASS = """
    import numpy as np
    import penstock as ps

    def function(x):
        import cv2
        cv2.GaussianBlur(np.zeros((64, 64), np.uint8), (3, 3), 1)
        return cv2.getNumThreads()

    ds = ps.Dataset.range(400).map(function, num_parallel_calls=2)
    list(ds.iterator(executor={executor!r}))
    print(sorted({{int(n) for n in ds.iterator(executor={executor!r})}}))
"""


@pytest.mark.parametrize("executor", ["thread", "process", "inline"])
def test_it_has_one_thread_from_the_second_pass_on(executor):
    done = run(PASS.format(executor=executor))
    assert (done.code, done.out) == (0, "[1]\n"), done.err


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("OPENCV_FOR_THREADS_NUM", "2")
    done = run(PASS.format(executor="thread"))
    assert (done.code, done.out) == (0, "[2]\n"), done.err
