"""A prediction beside its measurement: by part of the step, and op by op."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from foreshard_analysis.breakdown import PARTS, SKIPPED_STEPS, typical_parts
from foreshard_analysis.errors import ExitCode, InputError, usage
from foreshard_analysis.events import load_events, ranks
from foreshard_analysis.trace_file import Trace

OP = ["micro_batch", "op"]


@dataclass(frozen=True)
class PartRow:
    """Seconds of one part of a typical step."""

    name: str
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """(predicted − measured) / measured; NaN if nothing was measured."""
        return self.predicted_s / self.measured_s - 1 if self.measured_s else float("nan")


def predicted_and_measured(one: Trace, other: Trace) -> tuple[Trace, Trace]:
    """The two in this order, whichever way round they were given. Raises InputError unless there is one of each and
    both are of one plan."""
    if one.info.kind == other.info.kind:
        raise usage(f"{one.path} and {other.path} are both {one.info.kind}", "a predicted and a measured trace")
    predicted, measured = (one, other) if one.info.predicted else (other, one)
    if predicted.info.plan_hash != measured.info.plan_hash:
        raise InputError(
            ExitCode.OUTSIDE,
            f"{predicted.path} is of plan {predicted.info.plan_hash}, {measured.path} of {measured.info.plan_hash}",
            "two traces of one plan",
            "predict with the settings of the run; `foreshard-compare` says where plans differ",
        )
    return predicted, measured


def part_rows(predicted: Trace, measured: Trace) -> list[PartRow]:
    """The parts of a typical step, then the whole."""
    p, m = typical_parts(predicted), typical_parts(measured)
    return [PartRow(name, float(p[name]), float(m[name])) for name in (*PARTS, "step")]


def op_times(trace: Trace) -> pd.DataFrame:
    """Seconds of each op of a typical step (the mean over ranks, then the median over steps without the warm-up),
    with its `lane` and `kind`, by micro-batch and op."""
    columns = ["rank", "step", "micro_batch", "op", "lane", "kind", "duration_ns"]
    events = pd.concat([load_events(trace, rank, columns) for rank in ranks(trace)], ignore_index=True)
    first = sorted(events["step"].unique())[SKIPPED_STEPS:]
    counted = events[events["step"].isin(first)] if first else events
    seconds = counted.groupby([*OP, "step"])["duration_ns"].mean().groupby(level=OP).median() * 1e-9
    facts = counted.drop_duplicates(OP).set_index(OP)[["lane", "kind"]].astype(str)
    return facts.assign(seconds=seconds).sort_index()


def joined_ops(predicted: Trace, measured: Trace) -> pd.DataFrame:
    """A row per op that both have: `lane`, `kind`, `predicted_s`, `measured_s`."""
    own = op_times(predicted).rename(columns={"seconds": "predicted_s"})
    return own.join(op_times(measured)["seconds"].rename("measured_s"), how="inner")


def percent_text(part: float) -> str:
    return "" if np.isnan(part) else f"{100 * part:+.1f} %"


def comparison_text(rows: Sequence[PartRow]) -> str:
    lines = [f"{'part of a typical step':<24}{'predicted':>12}{'measured':>12}{'error':>10}"]
    for row in rows:
        times = f"{1e3 * row.predicted_s:>9.3f} ms{1e3 * row.measured_s:>9.3f} ms"
        lines.append(f"{row.name:<24}{times}{percent_text(row.error):>10}")
    return "\n".join(lines)
