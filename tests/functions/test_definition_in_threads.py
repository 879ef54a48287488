"""Threads can parse and compile at the same time, also if a garbage collection runs Python code meanwhile."""

import ast
import gc
import sys
import threading
import time

import pytest

from penstock.functions.definition import compiled_tree, parsed

TEXT = "def f(x):\n" + "".join(f"    x = [x, ({i}, x + {i})]\n" for i in range(100))


class Slow:
    """An object that lets other threads run while it is collected."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0)


def raised(parse, compiles, threads=4, each=15):
    found = []

    def work():
        try:
            for _ in range(each):
                Slow()
                compiles(parse(TEXT))
        except SystemError as error:
            found.append(str(error))

    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    try:
        at_work = [threading.Thread(target=work) for _ in range(threads)]
        for thread in at_work:
            thread.start()
        for thread in at_work:
            thread.join()
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    return found


@pytest.mark.filterwarnings("ignore")
def test_they_are_alone():
    assert raised(parsed, lambda tree: compiled_tree(tree, "<text>", 0)) == []
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        parsed("x")
        assert not gc.isenabled()
    finally:
        gc.enable()


if __name__ == "__main__":
    print(raised(ast.parse, lambda tree: compile(tree, "<text>", "exec"))[:3])
