"""Where a step goes: compute by phase, communication that compute does not cover, and neither."""

import numpy as np
import pandas as pd

from foreshard_analysis.events import COMMUNICATION_LANES, COMPUTE, load_events, load_steps, phases, ranks
from foreshard_analysis.intervals import Intervals, uncovered, union
from foreshard_analysis.trace_file import Trace

PARTS = ("forward", "backward", "exposed communication", "update", "idle")
SKIPPED_STEPS = 1
"""First steps that do not count as typical: warm-up."""
STEP = ["step", "rank"]


def exposed(events: pd.DataFrame) -> Intervals:
    """When a communication lane is busy and compute is idle. The events are of one rank."""
    return uncovered(_busy(events, COMMUNICATION_LANES), _busy(events, (COMPUTE,)))


def step_parts(trace: Trace) -> pd.DataFrame:
    """Seconds of each part, and of the whole `step`, for each step and rank that has events; the parts add up."""
    of_op = phases(trace)
    rows = [_parts_of_rank(load_events(trace, rank), of_op) for rank in ranks(trace)]
    parts = pd.concat(rows).join(load_steps(trace).set_index(STEP)["duration_ns"].rename("step"), how="inner")
    parts["idle"] = parts["step"] - parts.drop(columns="step").sum(axis=1)
    return parts[[*PARTS, "step"]] * 1e-9


def typical_parts(trace: Trace) -> pd.Series:
    """Every part on its own: the mean over ranks, then the median over steps without the warm-up."""
    return typical(step_parts(trace))


def typical(by_step_and_rank: pd.DataFrame) -> pd.Series:
    means = by_step_and_rank.groupby(level="step").mean().sort_index()
    return (means.iloc[SKIPPED_STEPS:] if len(means) > SKIPPED_STEPS else means).median()


def kind_seconds(trace: Trace) -> pd.Series:
    """Seconds of a typical step in which ops of each kind ran, longest first."""
    events = pd.concat([load_events(trace, rank, ["rank", "step", "kind", "duration_ns"]) for rank in ranks(trace)])
    events["kind"] = events["kind"].astype(str)
    total = events.pivot_table(index=STEP, columns="kind", values="duration_ns", aggfunc="sum", fill_value=0)
    return (typical(total) * 1e-9).sort_values(ascending=False)


def lane_seconds(trace: Trace) -> pd.Series:
    """Seconds of a typical step for which each lane is busy, lanes in the trace's order."""
    events = pd.concat([load_events(trace, rank, ["rank", "step", "lane", "duration_ns"]) for rank in ranks(trace)])
    total = events.pivot_table(index=STEP, columns="lane", values="duration_ns", aggfunc="sum", fill_value=0)
    return typical(total) * 1e-9


def _busy(events: pd.DataFrame, lanes: tuple[str, ...]) -> Intervals:
    own = events[events["lane"].isin(lanes)]
    return union(own["start_ns"].to_numpy(np.int64), own["end_ns"].to_numpy(np.int64))


def _parts_of_rank(events: pd.DataFrame, of_op: pd.Series) -> pd.DataFrame:
    compute = events[events["lane"] == COMPUTE]
    phase = of_op.iloc[compute["op"]].astype(str).to_numpy()
    parts = compute.assign(phase=phase).pivot_table(
        index=STEP, columns="phase", values="duration_ns", aggfunc="sum", fill_value=0
    )
    parts = parts.reindex(columns=["forward", "backward", "update"], fill_value=0)
    parts["exposed communication"] = events.groupby(STEP).apply(lambda step: exposed(step).length)
    return parts
