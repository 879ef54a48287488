"""What torch's tests ask of its DataLoader holds for penstock's, but for what is named here with its reason."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.adaptors.loader_checks import CHECKS
from torch.utils import data

from penstock.torch import DataLoader

# torch forks its workers: Python 3.12 and JAX, where another test has loaded it, warn of the threads there are.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning", "ignore:This DataLoader will create"
)

DIFFERS = {
    "a_killed_worker_is_told_as_torch_tells_it": "the error is a RuntimeError in the engine's words, with the element",
    "waiting_too_long_is_a_runtime_error": "the error is a TimeoutError, as everywhere in penstock",
}


@pytest.mark.parametrize("name", CHECKS)
def test_torchs_loader(name):
    CHECKS[name](data.DataLoader)


@pytest.mark.parametrize("name", CHECKS)
def test_penstocks_loader(name, request):
    if name in DIFFERS:
        request.applymarker(pytest.mark.xfail(reason=DIFFERS[name], strict=True))
    CHECKS[name](DataLoader)


def test_the_page_says_how_many_hold():
    page = Path(__file__).parents[2] / "docs/reference/torch-data-loader.md"
    (found,) = re.findall(r"(\d+) of (\d+) checks", page.read_text())
    assert found == (str(len(CHECKS) - len(DIFFERS)), str(len(CHECKS)))
