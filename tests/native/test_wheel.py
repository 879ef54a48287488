"""A wheel (`make wheel-test`) in an environment without numba and a C compiler: its kernels work immediately."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WHEEL = os.environ.get("PENSTOCK_WHEEL", "")
pytestmark = pytest.mark.skipif(not WHEEL, reason="needs PENSTOCK_WHEEL, as `make wheel-test` gives it")

SCRIPT = """
import sys, warnings
sys.modules["numba"] = sys.modules["llvmlite"] = None
warnings.simplefilter("error")
import numpy as np
import penstock as ps
from penstock.native.library import plain_versions, serving
assert "wheel-env" in ps.__file__, ps.__file__
with ps.io.TFRecordWriter(sys.argv[1]) as writer:
    for i in range(100):
        writer.write(bytes(range(i)))
rows = list(ps.TFRecordDataset(sys.argv[1]).shuffle(10, seed=1))
assert sorted(map(len, rows)) == list(range(100))
photo = np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3)
files = [ps.image.encode_jpeg(photo), ps.image.encode_jpeg(photo[::-1])] * 8
ds = ps.Dataset.from_tensor_slices(files).map(lambda x: ps.image.resize(ps.image.decode_jpeg(x), (8, 9)) / 255)
assert next(iter(ds.batch(16))).shape == (16, 8, 9, 3)
assert "by Block" in ds.batch(16).explain()
keyed = ps.Dataset.range(4).map(lambda x: ps.element_key() % 7)
assert list(keyed.iterator(executor="process", epoch=0)) == list(keyed.iterator(executor="inline", epoch=0))
assert not plain_versions(), plain_versions()
print(serving())
"""


def test_its_kernels_serve_without_a_compiler(tmp_path):
    environment = tmp_path / "wheel-env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--target", packages, WHEEL], check=True
    )
    import pyarrow as pa

    (packages / "dependencies.pth").write_text(f"{Path(pa.__file__).parents[1]}\n")  # dependencies of penstock
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    own = {"PATH": "", "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, "-c", SCRIPT, str(tmp_path / "records")],
        env=own, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compiled for "), done.stdout
    assert not [*home.iterdir()]
