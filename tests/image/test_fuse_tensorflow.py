"""A fused chain beside what TensorFlow gave for it; the file holds its inputs, its results and TensorFlow's version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.image.colour.adjust import adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation
from penstock.image.fuse import chain, fuse
from penstock.trace.traced import trace

STORED = np.load(Path(__file__).parents[1] / "data" / "tensorflow" / "fuse.npz")
CASES = sorted(name.removeprefix("result_") for name in STORED.files if name.startswith("result_"))
image = ps.image


def chains(a: float, b: float, c: float, d: float) -> dict[str, Callable[[Any], Any]]:
    """The colours of each case, by their initials in order."""
    return {
        "bshc": lambda x: adjust_contrast(adjust_hue(adjust_saturation(adjust_brightness(x, a), b), c), d),
        "cbhs": lambda x: adjust_saturation(adjust_hue(adjust_brightness(adjust_contrast(x, a), b), c), d),
        "hcsb": lambda x: adjust_brightness(adjust_saturation(adjust_contrast(adjust_hue(x, a), b), c), d),
        "schc": lambda x: adjust_contrast(adjust_hue(adjust_contrast(adjust_saturation(x, a), b), c), d),
    }


@pytest.mark.parametrize("case", CASES)
def test_the_results_are_tensorflows_to_the_last_bit(case: str) -> None:
    chain._NATIVE.loaded()
    number, order = case.split("_")
    coloured = chains(*STORED[f"args_{case}"].tolist())[order]

    def function(x: bytes) -> Any:
        y = coloured(image.flip_left_right(image.decode_jpeg(x, channels=3)))
        return image.flip_up_down(image.resize(y, (40, 32))) / 255.0

    column = BytesColumn.from_values([STORED[f"jpeg_{number}"].tobytes()])
    graph = trace(function, Block.single(column).structure, [column.spec()]).graph
    assert graph is not None
    short = fuse(graph)
    assert len(short.equations) == 1
    np.testing.assert_array_equal(short.run([column], 1)[0].values()[0], STORED[f"result_{case}"])
