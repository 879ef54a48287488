"""What holds for every test: property tests repeat themselves exactly, documentation examples leave no files behind."""

import importlib.util
import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# No deadline: on a busy machine it fails tests for being run beside others.
settings.register_profile(
    "default", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
for backend in ("jax", "torch"):  # of those Keras may have, the quickest to load come first
    if importlib.util.find_spec(backend):
        os.environ.setdefault("KERAS_BACKEND", backend)
os.environ["PENSTOCK_REMEMBER"] = "0"  # what one test's pipeline was tuned to is nothing to another, or to its user

FRAMEWORKS = {
    "to_torch(": "torch",
    "to_jax(": "jax",
    "to_keras(": "keras",
    "import torch": "torch",
    ", torch\n": "torch",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples that call a framework run where it is installed."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            code = "".join(example.source for example in item.dtest.examples)
            for call, module in FRAMEWORKS.items():
                if call in code and importlib.util.find_spec(module) is None:
                    item.add_marker(pytest.mark.skip(reason=f"{module} is not installed"))


@pytest.fixture(autouse=True)
def _home_is_empty(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Prepared data of the person who runs the tests is neither read nor written."""
    monkeypatch.setenv("PENSTOCK_DATA_DIR", str(tmp_path_factory.getbasetemp() / "penstock_datasets"))


@pytest.fixture(autouse=True)
def _temporary_files_go(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What examples make with `tempfile` is removed with the other folders of the run."""
    folder = tmp_path_factory.getbasetemp() / "tempfile"
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
