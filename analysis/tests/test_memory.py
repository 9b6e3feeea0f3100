"""Live bytes over time, of plans whose lives are known."""

from pathlib import Path

from foreshard_analysis.memory import memory_timeline, step_memory
from foreshard_analysis.trace_file import Trace
from hand_written import STEP_NS, Buffer, Event, Op, Step, events_of_step, write_trace


def totals(path: Path) -> dict[int, int]:
    with Trace(path) as trace:
        timeline = memory_timeline(trace)
    return dict(zip(timeline["time_ns"], timeline["total"], strict=True))


def test_live_bytes_are_those_on_paper(one_step: Path) -> None:
    assert totals(one_step) == {0: 6000, 100: 6500, 300: 10500, 700: 6000, 900: 2000}
    with Trace(one_step) as trace:
        peak = memory_timeline(trace).set_index("time_ns").loc[300]
    assert peak["gathered"] == 4000 and peak["activations"] == 500 and peak["unsharded_gradients"] == 4000
    assert peak["parameters"] == peak["gradients"] == 1000
    assert peak["optimizer"] == 0  # in host memory


def gradient_over_two_micro_batches(path: Path, accumulate: bool) -> dict[int, int]:
    """A buffer of 4000 bytes that both runs of a segment write, [100, 200) and [500, 600), beside 1000 bytes."""
    ops = [Op("linear", "compute", "backward", (), (1,), accumulate)]
    buffers = [Buffer(1000, "parameters", persistent=True), Buffer(4000, "unsharded_gradients")]
    events = [Event(0, 100, 100, micro_batch=0), Event(0, 500, 100, micro_batch=1)]
    return totals(write_trace(path, events, [Step(0, STEP_NS)], ops, buffers))


def test_a_buffer_lives_between_runs_only_if_the_second_adds_to_it(tmp_path: Path) -> None:
    assert gradient_over_two_micro_batches(tmp_path / "sum.h5", accumulate=True) == {100: 5000, 600: 1000}
    again = {100: 5000, 200: 1000, 500: 5000, 600: 1000}
    assert gradient_over_two_micro_batches(tmp_path / "new.h5", accumulate=False) == again


def test_the_memory_of_a_step_begins_with_what_is_live_then(tmp_path: Path) -> None:
    events = events_of_step() + events_of_step(5000, step=2)
    path = write_trace(tmp_path / "t.h5", events, [Step(0, STEP_NS), Step(5000, STEP_NS, step=2)])
    with Trace(path) as trace:
        memory = step_memory(trace, 0, 2)
    assert [round(1e9 * time) for time in memory["time_s"]] == [0, 100, 300, 700, 900]
    assert list(memory["total"]) == [6000, 6500, 10500, 6000, 2000]
