"""Traces for the tests: written by hand, and by the real commands where FORESHARD_BIN names their folder."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import hand_written

MODEL = ["--model.preset=byte-tiny", "--model.max_seq_len=64"]


@pytest.fixture
def one_step(tmp_path: Path) -> Path:
    return hand_written.one_step(tmp_path / "t.h5")


@pytest.fixture(scope="session")
def commands() -> Path:
    """Folder of foreshard-plan and the other commands."""
    folder = os.environ.get("FORESHARD_BIN")
    if not folder:
        pytest.skip("FORESHARD_BIN does not name the folder of foreshard-plan")
    return Path(folder)


Predict = Callable[..., Path]


@pytest.fixture(scope="session")
def predict(commands: Path, tmp_path_factory: pytest.TempPathFactory) -> Predict:
    """Of further arguments of foreshard-plan, the trace that it writes."""

    def trace_of(*arguments: str) -> Path:
        path = tmp_path_factory.mktemp("predicted") / "predicted.h5"
        subprocess.run([commands / "foreshard-plan", *MODEL, *arguments, f"--trace={path}"], check=True)
        return path

    return trace_of


@pytest.fixture(scope="session")
def predicted(predict: Predict) -> Path:
    return predict("--parallel.world_size=2")


@pytest.fixture(scope="session")
def run_folder(commands: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run of eight steps on two ranks."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "text.txt").write_text("All work and no play makes Jack a dull boy.\n" * 200)
    make = [commands / "foreshard-data", "make", f"--text={folder / 'text.txt'}", f"--out={folder / 'text'}"]
    subprocess.run(make, check=True)
    tokens = folder / "text_train.bin"
    train = [commands / "foreshard-train", *MODEL, f"--data.path={tokens}", "--train.steps=8", f"--run.dir={folder}"]
    subprocess.run([*shlex.split(os.environ.get("FORESHARD_MPIRUN", "mpirun -n")), "2", *train], check=True)
    return folder / "train" / "latest"


@pytest.fixture(scope="session")
def measured(run_folder: Path) -> Path:
    return run_folder / "trace.h5"
