"""metrics.jsonl as a table."""

import math
from pathlib import Path

import pytest

from foreshard_analysis.errors import InputError
from foreshard_analysis.metrics import load_metrics, load_validations

HEADER = '{"schema": "foreshard-metrics", "version": 1, "run_id": "r"}\n'
ROWS = """{"step": 1, "loss": 5.5, "mfu_pct": null, "warmup": true}
{"step": 2, "loss": 4.25, "mfu_pct": null, "warmup": false}
"""


def written(folder: Path, text: str) -> Path:
    (folder / "metrics.jsonl").write_text(text)
    return folder


def test_steps_and_validations_are_told_apart(tmp_path: Path) -> None:
    written(tmp_path, HEADER + ROWS + '{"step": 2, "val_loss": 4.5, "val_s": 0.1}\n')
    metrics = load_metrics(tmp_path)
    assert list(metrics["step"]) == [1, 2] and list(metrics["loss"]) == [5.5, 4.25]
    assert math.isnan(metrics["mfu_pct"][0]) and list(metrics["warmup"]) == [True, False]
    assert list(load_validations(tmp_path / "metrics.jsonl")["val_loss"]) == [4.5]


def test_a_line_that_a_kill_cut_is_passed_over(tmp_path: Path) -> None:
    assert len(load_metrics(written(tmp_path, HEADER + ROWS + '{"step": 3, "lo'))) == 2


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", "{}"),
        (ROWS, "step"),
        (HEADER.replace("1", "2"), '"version": 2'),
        (HEADER + "{\n" + ROWS, "line 2"),
        (HEADER + "[]\n{}\n", "line 2"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, seen: str) -> None:
    with pytest.raises(InputError) as caught:
        load_metrics(written(tmp_path, text))
    assert seen in caught.value.what


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_metrics(tmp_path)
