"""What a process that only compiles changes in numba does not change what it says of a kernel that is wrong."""

import os
import re
import subprocess
import sys

KERNELS = """
import sys
import numpy as np
from numba import njit, types
from numba.core.extending import intrinsic

if "lean" in sys.argv:
    from penstock.compiled.lean import make_lean

    make_lean()

@njit
def no_such_attribute(values):
    return values.nothing_of_the_kind

@njit
def no_such_operation(values):
    total = 0.0
    for value in values:
        total += value
    return total + "text"

@njit
def calls(values):
    return no_such_operation(values)

@njit
def two_kinds(values):
    if values.size:
        found = "text"
    else:
        found = values
    return found

@njit
def not_made(values):
    if values.size > 3:
        found = 1
    del found
    return found

@njit
def not_known(values):
    return not_anywhere(values)

@njit
def as_a_list(values):
    return [values, 1]

@intrinsic
def written_wrongly(context, value):
    def write(context, builder, signature, args):
        raise NotImplementedError("cannot be written")

    return types.int64(value), write

@njit
def lowered(values):
    return written_wrongly(values)

@njit
def not_python_of_numbas(values):
    with open("file") as file:
        return file

for name, kernel in list(globals().items()):
    if hasattr(kernel, "py_func"):
        try:
            kernel(np.zeros(4))
        except Exception as error:
            print(name, type(error).__name__, error, "----", sep="\\n")
"""
NAMES = re.findall(r"@njit\ndef (\w+)", KERNELS)


def said(file, *how):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1",
    }
    done = subprocess.run([sys.executable, file, *how], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return re.sub(r"0x[0-9a-f]+", "0x", done.stdout).split("----\n")


def test_errors_of_kernels_are_said_in_numbas_words(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    numbas = said(tmp_path / "kernels.py")
    assert [each.partition("\n")[0] for each in numbas] == [*NAMES, ""]
    assert said(tmp_path / "kernels.py", "lean") == numbas
