"""Traces written by hand, by SCHEMA.md alone, whose times and bytes can be summed on paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

LANES = ("compute", "gather", "reduce", "replicate", "copy")
KINDS = ("linear", "all_gather", "reduce_scatter", "all_reduce", "adamw")
PHASES = ("forward", "backward", "update")
CLASSES = ("parameters", "gradients", "optimizer", "gathered", "unsharded_gradients", "activations", "batch")


@dataclass(frozen=True)
class Op:
    kind: str
    lane: str
    phase: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    accumulate: bool = False


@dataclass(frozen=True)
class Buffer:
    size: int
    memory_class: str
    persistent: bool = False
    space: str = "device"


@dataclass(frozen=True)
class Event:
    op: int
    start_ns: int
    duration_ns: int
    rank: int = 0
    step: int = 1
    micro_batch: int = 0


@dataclass(frozen=True)
class Step:
    start_ns: int
    duration_ns: int
    rank: int = 0
    step: int = 1


PARAMETERS, GRADIENTS, GATHERED, ACTIVATIONS, UNSHARDED, MOMENTS = range(6)
BUFFERS = (
    Buffer(1000, "parameters", persistent=True),
    Buffer(1000, "gradients", persistent=True),
    Buffer(4000, "gathered"),
    Buffer(500, "activations"),
    Buffer(4000, "unsharded_gradients"),
    Buffer(9999, "optimizer", persistent=True, space="host"),
)
OPS = (
    Op("all_gather", "gather", "forward", (PARAMETERS,), (GATHERED,)),
    Op("linear", "compute", "forward", (GATHERED,), (ACTIVATIONS,)),
    Op("linear", "compute", "backward", (ACTIVATIONS, GATHERED), (UNSHARDED,)),
    Op("reduce_scatter", "reduce", "backward", (UNSHARDED,), (GRADIENTS,)),
    Op("adamw", "compute", "update", (GRADIENTS,), (PARAMETERS, MOMENTS)),
)
STEP_SPANS = ((0, 100), (100, 200), (300, 400), (650, 250), (900, 100))
"""Start and duration of each op: the gather and [700, 900) of the reduction are exposed."""
STEP_NS = 1050


def without_buffers(path: Path) -> Path:
    """The trace of a runtime that allocates while it runs: its ops have no operands."""
    with h5py.File(path, "a") as file:
        for name in ("plan/buffers", "plan/operands"):
            for column, dataset in list(file[name].items()):
                del file[name][column]
                file[name].create_dataset(column, data=np.empty(0, np.int64), dtype=dataset.dtype)
        for column in ("first_operand", "input_count", "output_count"):
            file["plan/ops"][column][:] = 0
    return path


def events_of_step(origin_ns: int = 0, rank: int = 0, step: int = 1, stretch: int = 1) -> list[Event]:
    spans = enumerate(STEP_SPANS)
    return [Event(op, origin_ns + stretch * start, stretch * length, rank, step) for op, (start, length) in spans]


def one_step(path: Path, **attributes: object) -> Path:
    return write_trace(path, events_of_step(), [Step(0, STEP_NS)], **attributes)


def write_trace(path: Path, events: Sequence[Event], steps: Sequence[Step], ops: Sequence[Op] = OPS,
                buffers: Sequence[Buffer] = BUFFERS, closed: bool = True, **attributes: object) -> Path:  # fmt: skip
    """`attributes` replace those of the root."""
    with h5py.File(path, "w") as file:
        file.attrs.update({**_root_attributes(), **attributes})
        _write_events(file, events, ops)
        _write_table(file, "steps", [vars(step) for step in steps])
        _write_plan(file, ops, buffers)
        if closed:
            file.attrs["closed"] = 1
            _write_summary(file, steps)
    return path


def _root_attributes() -> dict[str, object]:
    texts = {"format": "foreshard-trace", "format_version": "1.0", "kind": "measured", "run_id": "by hand"}
    texts |= {"software": "hand", "softwareVersion": "0", "date": "today", "command_line": "a < b", "config": "{}"}
    return {**texts, "clock": "virtual", "world_size": 2, "plan_hash": "00ff", "flushing": 0}


def _enum(names: Sequence[str]) -> np.dtype:
    return h5py.enum_dtype({name: value for value, name in enumerate(names)}, basetype="u1")


def _write_column(group: h5py.Group, name: str, values: Sequence, names: Sequence[str] = ()) -> None:
    if names:
        group.create_dataset(name, data=[names.index(value) for value in values], dtype=_enum(names))
    else:
        group.create_dataset(name, data=np.array(values))


def _write_table(
    file: h5py.File, name: str, rows: Sequence[dict], enums: dict[str, Sequence[str]] | None = None
) -> None:
    group = file.create_group(name)
    for column in rows[0] if rows else ():
        _write_column(group, column, [row[column] for row in rows], (enums or {}).get(column, ()))


def _write_events(file: h5py.File, events: Sequence[Event], ops: Sequence[Op]) -> None:
    ordered = sorted(events, key=lambda event: event.rank)
    facts = {"unit": 0, "received_bytes": 0, "bytes": 0, "flops": 0.0}
    rows = [{**vars(event), "lane": ops[event.op].lane, "kind": ops[event.op].kind, **facts} for event in ordered]
    _write_table(file, "events", rows, {"lane": LANES, "kind": KINDS})
    ranks = [event.rank for event in ordered]
    batches = [
        {"rank": rank, "first_row": ranks.index(rank), "row_count": ranks.count(rank)} for rank in sorted(set(ranks))
    ]
    _write_table(file, "batches", batches)


def _write_plan(file: h5py.File, ops: Sequence[Op], buffers: Sequence[Buffer]) -> None:
    rows, operands = [], []
    for op in ops:
        rows.append(
            {
                **{name: getattr(op, name) for name in ("kind", "lane", "phase", "accumulate")},
                **{"first_operand": len(operands), "input_count": len(op.inputs), "output_count": len(op.outputs)},
            }
        )
        operands += [{"buffer": buffer} for buffer in (*op.inputs, *op.outputs)]
    _write_table(file, "plan/ops", rows, {"kind": KINDS, "lane": LANES, "phase": PHASES})
    _write_table(file, "plan/operands", operands)
    enums = {"memory_class": CLASSES, "space": ("device", "host")}
    _write_table(file, "plan/buffers", [vars(buffer) for buffer in buffers], enums)
    file.create_dataset("plan/units/name", data=np.array([b"root"]))
    sizes = {"parameters": 250, "micro_batches": 1, "micro_batch_tokens": 64, "arena_bytes": 11000}
    file["plan"].attrs.update(sizes)


def _write_summary(file: h5py.File, steps: Sequence[Step]) -> None:
    values = {"step_time_s": 1e-6 * STEP_NS, "tflops_per_device": 0.5, "exposed_comm_s": 3e-7, "arena_bytes": 11000}
    values |= {"arena_touched_bytes": 10500, "host_arena_bytes": 9999, "rss_bytes": 20000, "base_rss_bytes": 9000}
    for name, value in values.items():
        file[f"summary/{name}"] = value
    collective = {"kind": "all_gather", "count": 1, "payload_bytes": 4000, "received_bytes": 2000}
    _write_table(file, "summary/collectives", [collective], {"kind": KINDS})
    times = [{"step": step.step, "step_time": 1e-9 * step.duration_ns} for step in steps if step.rank == 0]
    _write_table(file, "summary/step_time", times)
