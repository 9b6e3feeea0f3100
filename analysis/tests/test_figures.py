"""Figures: that what is drawn is what the tables hold."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from foreshard_analysis.comparison import joined_ops
from foreshard_analysis.events import spans
from foreshard_analysis.figures.comparison import comparison_figure
from foreshard_analysis.figures.memory import memory_figure, unit_of
from foreshard_analysis.figures.scaling import scaling_figure
from foreshard_analysis.figures.style import EXPOSED_COLOR, LANE_COLORS, PHASE_COLORS, time_unit
from foreshard_analysis.figures.timeline import timeline_figure
from foreshard_analysis.memory import step_memory
from foreshard_analysis.scaling import ScalingPoint
from foreshard_analysis.trace_file import Trace
from foreshard_analysis.writing import inline_svg


def test_the_timeline_has_a_bar_for_each_op_where_it_ran(one_step: Path) -> None:
    with Trace(one_step) as trace:
        (axes,) = timeline_figure(spans(trace), "title").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["compute", "gather", "reduce", "exposed"]
    bars = [
        (to_hex(bar.get_facecolor()[0]), *path.get_extents().intervalx)
        for bar in axes.collections
        for path in bar.get_paths()
    ]
    expected = [
        (PHASE_COLORS["forward"], 0.1, 0.3),
        (PHASE_COLORS["backward"], 0.3, 0.7),
        (PHASE_COLORS["update"], 0.9, 1.0),
        (LANE_COLORS["gather"], 0.0, 0.1),
        (LANE_COLORS["reduce"], 0.65, 0.9),
        (EXPOSED_COLOR, 0.0, 0.1),
        (EXPOSED_COLOR, 0.7, 0.9),
    ]  # microseconds
    assert [(color, round(begin, 6), round(end, 6)) for color, begin, end in sorted(bars)] == sorted(expected)


def test_the_memory_figure_marks_the_peak(one_step: Path) -> None:
    with Trace(one_step) as trace:
        figure = memory_figure(step_memory(trace), trace.info.arena_bytes, "")
    (axes,) = figure.axes
    (peak,) = (line for line in axes.lines if line.get_marker() == "v")
    assert (float(peak.get_xdata()[0]), float(peak.get_ydata()[0])) == pytest.approx((300, 10500 / 1024))  # ns, KiB
    assert "peak 10.25 KiB" in inline_svg(figure)


def test_the_comparison_has_a_point_for_each_op(one_step: Path) -> None:
    with Trace(one_step) as trace:
        ops = joined_ops(trace, trace)
    (axes,) = comparison_figure(ops, "").axes
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in points) == 5
    assert all((line.get_xdata() == line.get_ydata()).all() for line in points)


def test_the_ideal_line_starts_at_the_measured_run_with_fewest_ranks() -> None:
    runs = [(2, 10.0, "measured"), (8, 36.0, "measured"), (2, 12.0, "predicted")]
    (axes,) = scaling_figure([ScalingPoint(*run, Path("t.h5")) for run in runs]).axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert lines == {"ideal": [10, 40], "measured": [10, 36], "predicted": [12]}


@pytest.mark.parametrize(("seconds", "unit"), [(2, "s"), (0.5, "ms"), (2e-5, "µs"), (3e-8, "ns")])
def test_times_are_shown_in_the_unit_that_suits_the_longest(seconds: float, unit: str) -> None:
    scale, name = time_unit(seconds)
    assert name == unit and 1 <= seconds * scale < 1000


def test_bytes_are_shown_in_the_largest_unit_that_is_reached() -> None:
    assert [unit_of(size)[1] for size in (0, 1023, 1024, 2**20, 2**30 - 1, 2**40)] == [
        "B", "B", "KiB", "MiB", "MiB", "GiB"
    ]  # fmt: skip


def test_a_figure_is_the_same_file_each_time(one_step: Path) -> None:
    with Trace(one_step) as trace:
        tables: list[pd.DataFrame] = [spans(trace), spans(trace)]
    first, second = (inline_svg(timeline_figure(table, "t")) for table in tables)
    assert first == second and first.startswith("<svg")
