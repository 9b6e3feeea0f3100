"""Remakes data/paper_predictions.csv: calls foreshard-plan once for each line of data/paper_settings.csv.

    python -m foreshard_analysis predict-paper --plan build/default/bin/foreshard-plan

A line of the settings names a published point (figure, group, series, x), the model or command whose arguments stand
in data/paper_models.csv, further arguments, which number of the answer to read ("gpu.utilization.hardware.…") and what
to multiply it by to have the point's unit. A new line is all that a new prediction needs. "{models}" in arguments is
the folder of models that come with this package. Points of a runtime that foreshard-plan has not are left out."""

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from foreshard_analysis.errors import bad_file
from foreshard_analysis.paper import DATA, KEY, MODELS, OUT_OF_MEMORY, POINTS, SETTINGS, load_points, read_table

SETTING_COLUMNS = [*KEY, "model", "arguments", "reads", "scale"]
MODEL_COLUMNS = ["model", "arguments", "assumes"]
COLLECTIVES = "NCCL's model"
"""The runtime of a prediction that is not of a step."""
TIMEOUT_S = 600
EXIT_DONE, EXIT_DOES_NOT_FIT = 0, 3


@dataclass(frozen=True)
class Setting:
    """One point to predict, with all arguments of foreshard-plan."""

    figure: str
    group: str
    series: str
    x: str
    arguments: tuple[str, ...]
    reads: str
    scale: float
    unit: str
    assumes: str


@dataclass(frozen=True)
class Prediction:
    figure: str
    group: str
    series: str
    x: str
    value: str
    unit: str
    runtime: str
    assumes: str
    arguments: str


class CannotPredict(Exception):
    """foreshard-plan refused a setting; the message is its own."""


class NoSuchRuntime(CannotPredict):
    """It has no `runtime.profile` of that name."""


def load_settings(settings: Path = SETTINGS, models: Path = MODELS, points: Path = POINTS) -> list[Setting]:
    """Raises InputError for a line that names no published point, or a model that there is none of."""
    known = {row["model"]: row for row in read_table(models, MODEL_COLUMNS).to_dict("records")}
    units = load_points(points).set_index(KEY)["unit"].to_dict()
    rows = read_table(settings, SETTING_COLUMNS).to_dict("records")
    return [_setting(settings, row, known, units) for row in rows]


def predict(plan: str | Path, setting: Setting) -> Prediction:
    """Raises CannotPredict if foreshard-plan refuses, or answers without the number that is to be read."""
    answer = _answer(plan, setting.arguments)
    about = {"fits": True, "runtime": COLLECTIVES, **answer, **answer.get("gpu", {})}
    value = f"{setting.scale * float(_read(answer, setting.reads)):.6g}" if about["fits"] else OUT_OF_MEMORY
    point = {key: getattr(setting, key) for key in (*KEY, "unit", "assumes")}
    return Prediction(**point, value=value, runtime=about["runtime"], arguments=shlex.join(setting.arguments))


def table_of(predictions: Sequence[Prediction]) -> str:
    """As CSV."""
    columns = list(Prediction.__dataclass_fields__)
    return pd.DataFrame([asdict(row) for row in predictions], columns=columns).to_csv(index=False, lineterminator="\n")


def _setting(path: Path, row: dict[str, str], models: dict[str, dict[str, str]], units: dict[tuple, str]) -> Setting:
    point = (*(row[key] for key in KEY[:-1]), float(row["x"]))
    if point not in units:
        raise bad_file(path, f"names a point that is not published: {point}", f"{KEY} of a line of {POINTS.name}")
    if row["model"] not in models:
        raise bad_file(path, f"names the model {row['model']}", f"one of {', '.join(models)}")
    model = models[row["model"]]
    arguments = tuple(shlex.split(model["arguments"]) + shlex.split(row["arguments"]))
    own = {key: row[key] for key in (*KEY, "reads")}
    return Setting(**own, arguments=arguments, scale=float(row["scale"]), unit=units[point], assumes=model["assumes"])


def _answer(plan: str | Path, arguments: Sequence[str]) -> dict[str, Any]:
    command = [str(plan), *(argument.replace("{models}", str(DATA / "models")) for argument in arguments), "--json"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise CannotPredict(f"no answer within {TIMEOUT_S} s") from error
    try:
        answer = json.loads(result.stdout) if result.returncode in (EXIT_DONE, EXIT_DOES_NOT_FIT) else None
    except json.JSONDecodeError as error:
        raise CannotPredict(f"its answer is not JSON: {error}") from error
    if answer is None:
        raise _refusal(result.stderr.strip() or f"exit code {result.returncode}")
    return answer


def _refusal(message: str) -> CannotPredict:
    kind = NoSuchRuntime if re.search(r"--runtime\.profile: .* is not one of", message) else CannotPredict
    return kind(message)


def _read(answer: Any, path: str) -> Any:
    for key in path.split("."):
        try:
            answer = answer[int(key)] if isinstance(answer, list) else answer[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise CannotPredict(f"its answer has no {path}") from error
    return answer
