"""One step of one rank: a row per lane, and one for communication that compute does not cover."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foreshard_analysis.breakdown import exposed
from foreshard_analysis.events import COMPUTE
from foreshard_analysis.figures.style import (
    EXPOSED_COLOR,
    LANE_COLORS,
    PALETTE,
    PHASE_COLORS,
    one_axes,
    plain,
    time_unit,
)

NAMED_PART = 0.03
"""Spans of communication that are wider than this part of the step carry their unit's name."""
EXPOSED = "exposed"


def timeline_figure(spans: pd.DataFrame, title: str) -> Figure:
    """`spans` as `events.spans` gives them. Compute is coloured by phase."""
    lanes = [lane for lane in spans["lane"].cat.categories if (spans["lane"] == lane).any()]
    figure, axes = one_axes(11, 2 + 0.55 * len(lanes))
    unit, unit_name = time_unit(float(spans["end_s"].max()))
    scaled = spans.assign(begin=unit * spans["begin_s"], end=unit * spans["end_s"])
    axes.set_xlim(0, scaled["end"].max())
    _draw_compute(axes, lanes.index(COMPUTE) if COMPUTE in lanes else 0, scaled[scaled["lane"] == COMPUTE])
    for row, lane in enumerate(lanes):
        if lane != COMPUTE:
            _draw_lane(axes, row, scaled[scaled["lane"] == lane], LANE_COLORS.get(lane, PALETTE[-1]))
    _draw_exposed(axes, len(lanes), spans, unit)
    axes.set_yticks(range(len(lanes) + 1), [*lanes, EXPOSED])
    axes.set_ylim(len(lanes) + 0.5, -0.5)
    axes.set(xlabel=f"time since the step's start, {unit_name}", title=title)
    plain(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return figure


def _bars(axes: Axes, row: int, spans: pd.DataFrame, color: str, label: str = "") -> None:
    bars = list(zip(spans["begin"], spans["end"] - spans["begin"], strict=True))
    axes.broken_barh(bars, (row - 0.4, 0.8), color=color, linewidth=0, label=label)


def _draw_compute(axes: Axes, row: int, spans: pd.DataFrame) -> None:
    for phase, color in PHASE_COLORS.items():
        _bars(axes, row, spans[spans["phase"] == phase], color, phase)


def _draw_lane(axes: Axes, row: int, spans: pd.DataFrame, color: str) -> None:
    _bars(axes, row, spans, color)
    wide = spans[spans["end"] - spans["begin"] > NAMED_PART * axes.get_xlim()[1]]
    for span in wide.itertuples():
        axes.text(
            (span.begin + span.end) / 2,
            row,
            span.unit_name,
            ha="center",
            va="center",
            fontsize=7,
            color="white" if span.lane == "reduce" else "black",
            clip_on=True,
        )


def _draw_exposed(axes: Axes, row: int, spans: pd.DataFrame, unit: float) -> None:
    moments = exposed(spans)
    origin_ns = spans["start_ns"].iloc[0] - 1e9 * spans["begin_s"].iloc[0]
    begin, end = (unit * 1e-9 * (edges - origin_ns) for edges in (moments.begins, moments.ends))
    _bars(axes, row, pd.DataFrame({"begin": begin, "end": end}), EXPOSED_COLOR)
