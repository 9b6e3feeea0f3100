"""What happened: /events and /steps as tables, and the spans of one step by lane."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from foreshard_analysis.errors import bad_file, usage
from foreshard_analysis.trace_file import Trace

COMPUTE = "compute"
COMMUNICATION_LANES = ("gather", "reduce", "replicate")
EVENT_COLUMNS = (
    "rank",
    "lane",
    "kind",
    "op",
    "unit",
    "step",
    "micro_batch",
    "start_ns",
    "duration_ns",
    "received_bytes",
    "bytes",
    "flops",
)


def ranks(trace: Trace) -> list[int]:
    """Those that have events, in order."""
    return sorted(int(rank) for rank in trace.table("batches", ["rank"])["rank"].unique())


def load_events(trace: Trace, rank: int | None = None, columns: Sequence[str] = EVENT_COLUMNS) -> pd.DataFrame:
    """A row per executed op, of one rank or of all, and the column `end_ns` besides."""
    events = trace.table("events", columns, _slices_of(trace, rank) if rank is not None else ())
    if {"start_ns", "duration_ns"} <= set(columns):
        events["end_ns"] = events["start_ns"] + events["duration_ns"]
    return events


def load_steps(trace: Trace) -> pd.DataFrame:
    """A row per rank and step; raises InputError if the trace has none."""
    steps = trace.table("steps")
    if steps.empty:
        raise bad_file(trace.path, "has no steps", "a trace with at least one whole step")
    return steps


def phases(trace: Trace) -> pd.Series:
    """forward, backward or update, of each op."""
    return trace.table("plan/ops", ["phase"])["phase"]


def unit_names(trace: Trace) -> dict[int, str]:
    """Of each unit, by its row; −1, no unit, has the name ""."""
    return {-1: "", **trace.table("plan/units", ["name"])["name"].to_dict()}


def typical_step(trace: Trace, rank: int) -> int:
    """The step of that rank whose duration is the median of its steps; the warm-up counts only if it is alone."""
    steps = load_steps(trace)
    own = steps[steps["rank"] == rank].sort_values("step")
    if own.empty:
        raise usage(f"{trace.path}: rank {rank} has no steps", f"one of {sorted(steps['rank'].unique())}")
    counted = (own.iloc[1:] if len(own) > 1 else own).sort_values("duration_ns", kind="stable")
    return int(counted["step"].iloc[(len(counted) - 1) // 2])


def step_events(trace: Trace, rank: int, step: int) -> pd.DataFrame:
    """Events of one step of one rank; raises InputError if there are none."""
    events = load_events(trace, rank)
    own = events[events["step"] == step]
    if own.empty:
        seen = _short(sorted(int(step) for step in events["step"].unique()))
        raise usage(f"{trace.path}: rank {rank} has no events of step {step}", f"a step of {seen}")
    return own


def spans(trace: Trace, rank: int = 0, step: int | None = None) -> pd.DataFrame:
    """One step of one rank (default: a typical one): a row per op in order of start, with `lane`, `kind`, `phase`,
    `unit_name`, and `begin_s`, `end_s` since the step's start."""
    step = typical_step(trace, rank) if step is None else step
    own = step_events(trace, rank, step).sort_values(["start_ns", "op"], kind="stable").reset_index(drop=True)
    origin = step_start_ns(trace, rank, step, int(own["start_ns"].iloc[0]))
    return own.assign(
        phase=phases(trace).iloc[own["op"]].to_numpy(),
        unit_name=own["unit"].map(unit_names(trace)),
        begin_s=(own["start_ns"] - origin) * 1e-9,
        end_s=(own["end_ns"] - origin) * 1e-9,
    )


def step_start_ns(trace: Trace, rank: int, step: int, otherwise: int) -> int:
    """By /steps, or `otherwise` where it lacks the step: of a run that goes on."""
    steps = trace.table("steps", ["rank", "step", "start_ns"])
    own = steps[(steps["rank"] == rank) & (steps["step"] == step)]
    return otherwise if own.empty else int(own["start_ns"].iloc[0])


def _slices_of(trace: Trace, rank: int) -> list[slice]:
    index = trace.table("batches", ["rank", "first_row", "row_count"])
    own = index[index["rank"] == rank]
    if own.empty:
        raise usage(f"{trace.path}: rank {rank} has no events", f"one of {_short(ranks(trace))}")
    first, count = own["first_row"].to_numpy(np.int64), own["row_count"].to_numpy(np.int64)
    return [slice(int(begin), int(begin + rows)) for begin, rows in zip(first, count, strict=True)]


def _short(numbers: list[int]) -> str:
    consecutive = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return f"{numbers[0]} to {numbers[-1]}" if consecutive else ", ".join(map(str, numbers)) or "none"
