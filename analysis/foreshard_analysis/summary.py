"""The run in a few numbers: /summary and its collectives."""

from dataclasses import dataclass, fields

import pandas as pd

from foreshard_analysis.errors import bad_file
from foreshard_analysis.trace_file import Trace


@dataclass(frozen=True)
class Summary:
    """Single values of /summary; bytes are of the rank with most."""

    step_time_s: float
    tflops_per_device: float
    exposed_comm_s: float
    arena_bytes: int
    arena_touched_bytes: int
    host_arena_bytes: int
    rss_bytes: int
    base_rss_bytes: int


def load_summary(trace: Trace) -> Summary:
    _expect_closed(trace)
    return Summary(**{field.name: trace.value(f"summary/{field.name}") for field in fields(Summary)})


def load_collectives(trace: Trace) -> pd.DataFrame:
    """What one rank moves in one step: a row per kind, with count, payload and received bytes."""
    _expect_closed(trace)
    return trace.table("summary/collectives", ["kind", "count", "payload_bytes", "received_bytes"])


def load_step_times(trace: Trace) -> pd.DataFrame:
    """`step` and `step_time` in seconds, the mean over ranks."""
    _expect_closed(trace)
    return trace.table("summary/step_time", ["step", "step_time"])


def _expect_closed(trace: Trace) -> None:
    if not trace.has("summary"):
        raise bad_file(
            trace.path,
            "was not closed by its run and lacks its totals",
            "a trace of a run that ended",
            "`timeline` and `memory` work on it as it is",
        )
