"""Live bytes of the device's arena over time, as they follow from /events and /plan/buffers."""

import numpy as np
import pandas as pd

from foreshard_analysis.errors import bad_file
from foreshard_analysis.events import load_events, step_events, step_start_ns, typical_step
from foreshard_analysis.trace_file import Trace

RUN = ["step", "micro_batch"]


def has_buffers(trace: Trace) -> bool:
    """False of a runtime that allocates while it runs: then nothing is known of its memory but /summary."""
    return len(trace.table("plan/buffers", ["size"])) > 0


def memory_timeline(trace: Trace, rank: int = 0) -> pd.DataFrame:
    """`time_ns`, live bytes by class and their `total`, from that moment to the next row's: a row at the rank's first
    event and one wherever something changes. A persistent buffer is always live. Any other lives, in each run of a
    segment, from the start of the first op that touches it to the end of the last; one that a run reads before it
    writes it has been alive since the run before."""
    if not has_buffers(trace):
        raise bad_file(trace.path, "its plan has no buffers, as PyTorch's have none", "a trace of our own runtime")
    events = load_events(trace, rank, ["step", "micro_batch", "op", "start_ns", "duration_ns"])
    buffers = trace.table("plan/buffers", ["size", "memory_class", "space", "persistent"])
    on_device = buffers[buffers["space"] == "device"]
    lives = _lives(_touches(events, _operand_touches(trace)))
    moving = on_device[~on_device["persistent"]]
    changes = _changes(lives[lives["buffer"].isin(moving.index)], moving)
    start = int(events["start_ns"].min()) if len(events) else 0
    return _timeline(changes, _persistent(on_device), start)


def memory_classes(timeline: pd.DataFrame) -> list[str]:
    """The columns of a timeline that are classes of memory, in the trace's order."""
    return [column for column in timeline.columns if column not in ("time_ns", "time_s", "total")]


def step_memory(trace: Trace, rank: int = 0, step: int | None = None) -> pd.DataFrame:
    """The part of `memory_timeline` within one step (default: a typical one), with `time_s` since the step's start."""
    step = typical_step(trace, rank) if step is None else step
    own = step_events(trace, rank, step)
    begin, end = int(own["start_ns"].min()), int(own["end_ns"].max())
    timeline = memory_timeline(trace, rank)
    before = timeline[timeline["time_ns"] <= begin].tail(1).assign(time_ns=begin)
    within = timeline[(timeline["time_ns"] > begin) & (timeline["time_ns"] <= end)]
    origin = step_start_ns(trace, rank, step, begin)
    return pd.concat([before, within], ignore_index=True).assign(time_s=lambda rows: (rows["time_ns"] - origin) * 1e-9)


def _operand_touches(trace: Trace) -> pd.DataFrame:
    """A row per op and operand, inputs first: `op`, `buffer`, and whether what the buffer held before is used."""
    ops = trace.table("plan/ops", ["first_operand", "input_count", "output_count", "accumulate"])
    inputs, outputs = ops["input_count"].to_numpy(np.int64), ops["output_count"].to_numpy(np.int64)
    op = np.repeat(np.arange(len(ops)), inputs + outputs)
    position = np.arange(len(op)) - np.repeat(np.cumsum(inputs + outputs) - inputs - outputs, inputs + outputs)
    operand = ops["first_operand"].to_numpy(np.int64)[op] + position
    reads = (position < inputs[op]) | ops["accumulate"].to_numpy(bool)[op]
    buffer = trace.table("plan/operands", ["buffer"])["buffer"].to_numpy()[operand]
    touches = pd.DataFrame({"op": op, "buffer": buffer, "reads": reads})
    return touches[touches["buffer"] >= 0]


def _touches(events: pd.DataFrame, touches: pd.DataFrame) -> pd.DataFrame:
    """A row per run of a segment and buffer: from when to when it is touched, and whether it is read first."""
    ordered = events.sort_values([*RUN, "op"], kind="stable").merge(touches, on="op")
    ordered = ordered.sort_values([*RUN, "op"], kind="stable")
    return ordered.groupby([*RUN, "buffer"], as_index=False).agg(
        begin_ns=("start_ns", "min"), end_ns=("end_ns", "max"), read_first=("reads", "first")
    )


def _lives(touches: pd.DataFrame) -> pd.DataFrame:
    ordered = touches.sort_values(["buffer", *RUN], kind="stable")
    born = (~ordered["read_first"]).groupby(ordered["buffer"]).cumsum().rename("life")
    return ordered.groupby(["buffer", born], as_index=False).agg(
        begin_ns=("begin_ns", "first"), end_ns=("end_ns", "max")
    )


def _changes(lives: pd.DataFrame, buffers: pd.DataFrame) -> pd.DataFrame:
    """Bytes that each class gains at each moment."""
    of = buffers.loc[lives["buffer"]]
    births = pd.DataFrame({"time_ns": lives["begin_ns"].to_numpy(), "class": of["memory_class"].astype(str).to_numpy()})
    births["bytes"] = of["size"].to_numpy()
    deaths = births.assign(time_ns=lives["end_ns"].to_numpy(), bytes=-births["bytes"])
    both = pd.concat([births, deaths], ignore_index=True)
    return both.pivot_table(index="time_ns", columns="class", values="bytes", aggfunc="sum", fill_value=0)


def _persistent(buffers: pd.DataFrame) -> pd.Series:
    """Bytes of each class that are always live; the index lists all classes."""
    always = buffers[buffers["persistent"]]
    classes = list(buffers["memory_class"].cat.categories)
    return always.groupby(always["memory_class"].astype(str))["size"].sum().reindex(classes, fill_value=0)


def _timeline(changes: pd.DataFrame, persistent: pd.Series, start_ns: int) -> pd.DataFrame:
    classes = list(persistent.index)
    gained = changes.reindex(columns=classes, fill_value=0)
    if start_ns not in gained.index:
        gained = pd.concat([pd.DataFrame(0, index=[start_ns], columns=classes), gained])
    live = (gained.sort_index().cumsum() + persistent).astype("int64")
    return live.assign(total=live.sum(axis=1)).rename_axis("time_ns").reset_index().rename_axis(None, axis=1)
