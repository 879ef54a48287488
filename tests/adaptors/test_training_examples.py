"""The programs of examples/train train: on less data than by default, each as its own process, as a user starts it."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "examples" / "train"


def printed(program, *arguments, needs="torch", **variables):
    """What a program prints, line by line."""
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    command = [sys.executable, program if program == "-m" else str(PROGRAMS / program), *map(str, arguments)]
    env = {**os.environ, **variables}
    found = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def numbers(line):
    return [float(number) for number in re.findall(r"\d+\.\d+|\d+", line)]


def test_cats_and_dogs_are_told_apart_equally_well_however_they_are_fed():
    naive, pipelined = printed("torch_cats_dogs.py", "--count", 200, "--epochs", 4)
    assert naive.startswith("naive")
    assert pipelined.startswith("pipelined")
    assert numbers(naive)[0] == numbers(pipelined)[0] > 0.7


def backends():
    return [name for name in ("jax", "torch", "tensorflow") if importlib.util.find_spec(name)] or ["jax"]


def test_keras_learns_on_a_trained_base_equally_well_however_it_is_fed():
    backend = backends()[0]
    naive, pipelined = printed(
        "keras_transfer.py",
        "--count",
        200,
        "--epochs",
        2,
        needs="keras",
        KERAS_BACKEND=backend,
        TF_CPP_MIN_LOG_LEVEL="3",
    )
    assert naive.endswith(f"on {backend}")
    assert numbers(naive)[0] == numbers(pipelined)[0] > 0.7


def test_a_resnet_learns_from_augmented_pictures():
    assert numbers(printed("torch_cifar_resnet.py", "--count", 500, "--epochs", 4)[-1])[-1] > 0.8


def test_a_perceptron_learns_in_jax():
    assert numbers(printed("jax_mlp.py", "--count", 1000, "--epochs", 4, needs="jax")[-1])[-1] > 0.9


def test_a_transformer_learns_from_packed_sentences():
    *_, last, padding = printed("torch_text_packed.py", "--count", 2000)
    assert numbers(last)[-1] > 70
    assert numbers(padding)[0] < 10


def test_a_table_trains_alike_from_both_formats():
    tfrecord, parquet = printed("torch_tabular.py", "--count", 2000)
    assert numbers(tfrecord) == numbers(parquet)
    assert numbers(tfrecord)[1] > 80


def test_a_killed_run_ends_with_the_same_weights():
    whole, killed, goes_on, resumed, verdict = printed("torch_resume.py", "--count", 300, "--kill-at", 18)
    assert killed == "is killed at step 18"
    assert goes_on == "resumes after step 14, in epoch 1"
    assert resumed == whole
    assert verdict == "the same weights"


def test_two_ranks_train_one_model():
    *epochs, verdict = printed("torch_two_ranks.py", "--count", 301, "--epochs", 2)
    assert [line.split(", accuracy")[0] for line in epochs] == [
        f"epoch {epoch}: 6 steps on each rank, 300 rows together" for epoch in (1, 2)
    ]
    assert verdict == "all ranks have the same weights"


@pytest.mark.parametrize("model", [[], ["--fsdp"]], ids=["ddp", "fsdp"])
def test_ranks_under_torchrun_resume(model, tmp_path):
    def losses(*arguments):
        program = ["--nproc-per-node", 2, PROGRAMS / "torchrun_ddp_fsdp.py", "--count", 301, *model, *arguments]
        lines = printed("-m", "torch.distributed.run", *program)
        return sorted(line for line in lines if line.startswith("rank "))

    whole = losses("--steps", 8)
    assert len(whole) == 2
    assert losses("--steps", 4, "--checkpoint", tmp_path / "saved") != whole
    assert losses("--steps", 4, "--checkpoint", tmp_path / "saved") == whole


def test_two_jax_processes_train_one_model():
    *_, last = printed("jax_two_processes.py", needs="jax")
    assert last.startswith("epoch 3: global batches of shape (100, 2)")
    assert numbers(last)[-1] < 0.2
