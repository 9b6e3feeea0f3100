"""Events, spans and the parts of a step, of traces whose sums are known."""

from pathlib import Path

import pytest

import hand_written
from foreshard_analysis.breakdown import kind_seconds, lane_seconds, step_parts, typical_parts
from foreshard_analysis.errors import ExitCode, InputError
from foreshard_analysis.events import load_events, ranks, spans, typical_step
from foreshard_analysis.trace_file import Trace
from hand_written import STEP_NS, Step, events_of_step, write_trace

PARTS_NS = {"forward": 200, "backward": 400, "exposed communication": 300, "update": 100, "idle": 50, "step": 1050}
FACTORS = {1: 9, 2: 1, 3: 2, 4: 4}
"""By how much each step of `four_steps` is slower than the hand-written one; the first is the warm-up."""


@pytest.fixture
def four_steps(tmp_path: Path) -> Path:
    """Of two ranks, the second three times as slow."""
    events, steps = [], []
    for step, factor in FACTORS.items():
        for rank in (0, 1):
            stretch, origin = factor * (1 + 2 * rank), 10**6 * step
            events += events_of_step(origin, rank, step, stretch)
            steps.append(Step(origin, stretch * STEP_NS, rank, step))
    return write_trace(tmp_path / "four.h5", events, steps)


def test_the_parts_of_a_step_are_those_on_paper(one_step: Path) -> None:
    with Trace(one_step) as trace:
        parts = step_parts(trace).loc[(1, 0)]
    assert {name: round(1e9 * value) for name, value in parts.items()} == PARTS_NS


def test_a_typical_step_is_the_mean_over_ranks_and_the_median_over_steps_after_the_warm_up(four_steps: Path) -> None:
    with Trace(four_steps) as trace:
        parts = typical_parts(trace)
        gathers = kind_seconds(trace)["all_gather"]
        lanes = lane_seconds(trace)
    factor = 2 * 2  # the median of steps 2, 3, 4 times the mean of the ranks
    assert {name: round(1e9 * value) for name, value in parts.items()} == {k: factor * v for k, v in PARTS_NS.items()}
    assert gathers == pytest.approx(1e-9 * factor * 100)
    assert [round(1e9 * lanes[name]) for name in ("compute", "gather", "reduce")] == [700 * factor, 100 * factor, 1000]


def test_the_events_of_a_rank_are_its_own(four_steps: Path) -> None:
    with Trace(four_steps) as trace:
        assert ranks(trace) == [0, 1]
        own = load_events(trace, 1)
        assert set(own["rank"]) == {1} and len(own) == 4 * 5 and len(load_events(trace)) == 2 * 4 * 5
        assert (own["end_ns"] - own["start_ns"] == own["duration_ns"]).all()


def test_the_typical_step_of_a_rank_is_its_median(four_steps: Path) -> None:
    with Trace(four_steps) as trace:
        assert typical_step(trace, 0) == 3


def test_spans_begin_at_the_start_of_their_step(four_steps: Path) -> None:
    with Trace(four_steps) as trace:
        own = spans(trace, rank=1, step=2)
    assert [round(1e9 * begin) for begin in own["begin_s"]] == [3 * start for start, _ in hand_written.STEP_SPANS]
    assert list(own["phase"]) == ["forward", "forward", "backward", "backward", "update"]
    assert set(own["unit_name"]) == {"root"}


def test_ranks_and_steps_that_are_not_there_are_named(four_steps: Path) -> None:
    with Trace(four_steps) as trace:
        for ask, seen in ((lambda: load_events(trace, 7), "0, 1"), (lambda: spans(trace, 0, 9), "1 to 4")):
            with pytest.raises(InputError) as caught:
                ask()
            assert caught.value.code == ExitCode.USAGE and seen in caught.value.expected


def test_a_trace_without_steps_is_refused(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.h5", events_of_step(), [])
    with Trace(path) as trace, pytest.raises(InputError):
        typical_step(trace, 0)
