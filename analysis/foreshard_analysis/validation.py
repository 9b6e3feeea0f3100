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


def validation_text(rows: pd.DataFrame) -> str:
    """Mean absolute error and bias of each quantity, over all rows."""
    lines = [f"{'':<14}{'rows':>6}{'mean |error|':>14}{'bias':>10}"]
    for name, own in rows.groupby("quantity", sort=False):
        error = 100 * (own["predicted"] / own["measured"] - 1)
        lines.append(f"{name:<14}{len(own):>6}{error.abs().mean():>12.1f} %{error.mean():>+8.1f} %")
    return "\n".join(lines)


def _of_table(path: Path, quantity: Quantity) -> pd.DataFrame:
    table = read_table(path, ["source", quantity.predicted, quantity.error_percent])
    predicted, error = (pd.to_numeric(table[name]) for name in (quantity.predicted, quantity.error_percent))
    rows = table[["source"]].assign(quantity=quantity.name, predicted=predicted, measured=predicted / (1 + error / 100))
    return rows.dropna()
