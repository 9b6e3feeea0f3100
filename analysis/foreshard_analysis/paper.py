"""The figures of the FSDP paper (Zhao et al., arXiv 2304.11277): what it published and what we predict, as tables.

`data/README.md` says what is in which table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from foreshard_analysis.errors import bad_file

DATA = Path(__file__).parent / "data"
POINTS, PREDICTIONS, SETTINGS, MODELS = (
    DATA / f"paper_{name}.csv" for name in ("points", "predictions", "settings", "models")
)
KEY = ["figure", "group", "series", "x"]
"""What identifies a point."""
OUT_OF_MEMORY = "out of memory"
POINT_COLUMNS = [*KEY, "quantity", "value", "unit", "mark", "reading_error", "setting", "source"]
PREDICTION_COLUMNS = [*KEY, "value", "unit", "runtime", "assumes", "arguments"]


@dataclass(frozen=True)
class PaperFigure:
    """How one figure is drawn: lines over x, a panel for each group; or bars, a cluster for each group and x."""

    key: str
    title: str
    kind: Literal["lines", "bars"]
    x_label: str
    y_label: str


FIGURES = (
    PaperFigure("2b", "All-gathers of 2³⁰ fp32 elements in all", "lines", "elements per call", "total time, ms"),
    PaperFigure("6a", "T5: sharding strategies and DDP", "bars", "", "TFLOPS per GPU"),
    PaperFigure("6b", "GPT-175B: backward prefetch", "lines", "GPUs", "TFLOPS per GPU"),
    PaperFigure("6c", "Limiting gathers in flight", "bars", "machines", "median time per batch, s"),
    PaperFigure("7a", "DHEN: throughput", "lines", "GPUs", "samples per GPU and second"),
    PaperFigure("7b", "GPT-175B: throughput", "lines", "GPUs", "TFLOPS per GPU"),
    PaperFigure("7c", "T5-11B: throughput", "lines", "GPUs", "TFLOPS per GPU"),
    PaperFigure("8a", "DHEN: peak memory", "lines", "GPUs", "GB"),
    PaperFigure("8b", "GPT-175B: peak memory", "lines", "GPUs", "GB"),
    PaperFigure("8c", "T5-11B: peak memory", "lines", "GPUs", "GB"),
)


def load_points(path: Path = POINTS) -> pd.DataFrame:
    """What the paper published. `value` is NaN and `out_of_memory` true where that is what it says."""
    return _values(path, read_table(path, POINT_COLUMNS))


def load_predictions(path: Path = PREDICTIONS) -> pd.DataFrame:
    """What `paper_predictions` made, in the points' units."""
    return _values(path, read_table(path, PREDICTION_COLUMNS))


def read_table(path: Path, columns: list[str]) -> pd.DataFrame:
    """A CSV table as text, nothing taken for missing. Raises InputError unless it has these columns."""
    if not path.is_file():
        raise bad_file(path, "there is no such file", f"a table of {', '.join(columns)}", "check the name")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, comment="#")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise bad_file(path, f"not a CSV table ({error})", f"the columns {', '.join(columns)}") from error
    missing = [column for column in columns if column not in table]
    if missing:
        raise bad_file(path, f"has no column {', '.join(missing)}, only {', '.join(table)}", "all of them")
    return table


def joined(points: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """A row per published number that there is a prediction of, with `published` and `predicted`."""
    published = points.set_index(KEY)["value"].rename("published")
    return predictions.set_index(KEY)["value"].rename("predicted").to_frame().join(published, how="inner").dropna()


def relative_errors(points: pd.DataFrame, predictions: pd.DataFrame) -> pd.Series:
    """predicted / published − 1 of the points that have both."""
    both = joined(points, predictions)
    return both["predicted"] / both["published"] - 1


def _values(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    out_of_memory = table["value"] == OUT_OF_MEMORY
    numbers = {"x": table["x"], "value": table["value"].where(~out_of_memory)}
    return table.assign(**{name: _numbers(path, name, text) for name, text in numbers.items()}).assign(
        out_of_memory=out_of_memory
    )


def _numbers(path: Path, column: str, text: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(text, errors="coerce")
    bad = text[numbers.isna() & text.notna()]
    if len(bad):
        seen = f'{column} = "{bad.iloc[0]}" in line {bad.index[0] + 2}'
        raise bad_file(path, seen, f'a number or "{OUT_OF_MEMORY}"')
    return numbers
