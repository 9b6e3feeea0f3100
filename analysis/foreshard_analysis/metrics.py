"""A run's metrics.jsonl: loss, speed and memory by step."""

import json
from pathlib import Path

import pandas as pd

from foreshard_analysis.errors import bad_file

NAME = "metrics.jsonl"
SCHEMA = "foreshard-metrics"
VERSION = 1
EXPECTED = f"{NAME} of a run folder: its first line names the schema {SCHEMA}, version {VERSION}"


def metrics_beside(trace: Path) -> Path | None:
    """The metrics of the run folder that a trace lies in, if there are any."""
    path = trace.with_name(NAME)
    return path if path.is_file() else None


def load_metrics(path: str | Path) -> pd.DataFrame:
    """A row per step (not per validation), of a metrics file or a run folder. What is not known is NaN."""
    return _by_step(_lines(path), "loss")


def load_validations(path: str | Path) -> pd.DataFrame:
    """`step`, `val_loss` and `val_s` of each validation."""
    return _by_step(_lines(path), "val_loss")


def _by_step(rows: list[dict], column: str) -> pd.DataFrame:
    own = [row for row in rows if column in row]
    frame = pd.DataFrame(own, columns=list(own[0]) if own else ["step", column])
    return frame.apply(lambda values: values if values.dtype == bool else pd.to_numeric(values))


def _lines(path: str | Path) -> list[dict]:
    file = Path(path) / NAME if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise bad_file(file, "there is no such file", EXPECTED, "check the name")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    header, *rows = [_parsed(file, number, text, number == len(lines)) for number, text in enumerate(lines, 1)] or [{}]
    if header.get("schema") != SCHEMA or header.get("version") != VERSION:
        raise bad_file(file, f"its first line is {json.dumps(header)[:80]}", EXPECTED)
    return [row for row in rows if row]


def _parsed(file: Path, number: int, text: str, last: bool) -> dict:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        if last and number > 1:  # the run was killed, or is writing this line now
            return {}
        raise bad_file(file, f"line {number} is not JSON: {error}", EXPECTED) from error
    if not isinstance(row, dict):
        raise bad_file(file, f"line {number} is not an object", EXPECTED)
    return row
