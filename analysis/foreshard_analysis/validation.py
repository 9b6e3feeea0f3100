"""Published runs with predictions beside them: the tables that `foreshard-plan validate --out FOLDER` writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from foreshard_analysis.errors import bad_file
from foreshard_analysis.paper import read_table


@dataclass(frozen=True)
class Quantity:
    """What is predicted of published runs, and where it stands in their tables."""

    name: str
    unit: str
    predicted: str
    error_percent: str


QUANTITIES = (
    Quantity("throughput", "tokens per second and GPU", "predicted_tokens_per_s_per_gpu", "error_pct"),
    Quantity("peak memory", "GiB", "predicted_peak_mem_gib", "memory_error_pct"),
)


def load_validation(paths: Iterable[Path]) -> pd.DataFrame:
    """A row per prediction: `source`, `quantity`, `predicted`, `measured`. Raises InputError if there is none."""
    files = list(paths)
    rows = pd.concat([_of_table(path, quantity) for path in files for quantity in QUANTITIES], ignore_index=True)
    if rows.empty:
        raise bad_file(", ".join(map(str, files)), "no row has a prediction", "tables of foreshard-plan validate --out")
    return rows


@dataclass(frozen=True)
class Score:
    """Of one quantity, over all rows, in percent of what was measured."""

    quantity: str
    rows: int
    mean_absolute_error: float
    bias: float


def scores(rows: pd.DataFrame) -> list[Score]:
    errors = 100 * (rows["predicted"] / rows["measured"] - 1)
    by_quantity = errors.groupby(rows["quantity"], sort=False)
    return [Score(str(name), len(own), float(own.abs().mean()), float(own.mean())) for name, own in by_quantity]


def validation_text(rows: pd.DataFrame) -> str:
    lines = [f"{'':<14}{'rows':>6}{'mean |error|':>14}{'bias':>10}"]
    for score in scores(rows):
        lines.append(f"{score.quantity:<14}{score.rows:>6}{score.mean_absolute_error:>12.1f} %{score.bias:>+8.1f} %")
    return "\n".join(lines)


def _of_table(path: Path, quantity: Quantity) -> pd.DataFrame:
    table = read_table(path, ["source", quantity.predicted, quantity.error_percent])
    predicted, error = (pd.to_numeric(table[name]) for name in (quantity.predicted, quantity.error_percent))
    rows = table[["source"]].assign(quantity=quantity.name, predicted=predicted, measured=predicted / (1 + error / 100))
    return rows.dropna()
