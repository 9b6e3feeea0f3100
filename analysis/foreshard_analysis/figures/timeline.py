"""One step of one rank, a row per lane."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from foreshard_analysis.figures.style import LANE_COLORS, PALETTE, PHASE_COLORS, one_axes, plain, time_unit

NAMED_PART = 0.03
"""Spans of communication that are wider than this part of the step carry their unit's name."""


def timeline_figure(spans: pd.DataFrame, title: str) -> Figure:
    """`spans` as `events.spans` gives them. Compute is coloured by phase, other lanes by lane."""
    busy = [lane for lane in spans["lane"].cat.categories if (spans["lane"] == lane).any()]
    figure, axes = one_axes(11, 1.4 + 0.55 * len(busy))
    seconds, time_name = time_unit(float(spans["end_s"].max()))
    scaled = spans.assign(begin=seconds * spans["begin_s"], end=seconds * spans["end_s"])
    axes.set_xlim(0, scaled["end"].max())
    for row, lane in enumerate(busy):
        _draw_lane(axes, row, scaled[scaled["lane"] == lane])
    axes.set_yticks(range(len(busy)), busy)
    axes.set_ylim(len(busy) - 0.5, -0.5)
    axes.set_xlabel(f"time since the step's start, {time_name}")
    axes.set_title(title)
    plain(axes)
    used = _colors(spans)
    axes.legend(
        handles=[Patch(color=color, label=name) for name, color in used.items()],
        loc="upper left",
        bbox_to_anchor=(1, 1),
        frameon=False,
    )
    return figure


def _draw_lane(axes: Axes, row: int, spans: pd.DataFrame) -> None:
    for name, own in spans.groupby(_color_key(spans)):
        bars = list(zip(own["begin"], own["end"] - own["begin"], strict=True))
        axes.broken_barh(bars, (row - 0.4, 0.8), color=_color(str(name)), linewidth=0)
    if (spans["lane"] != "compute").all():
        _name_units(axes, row, spans)


def _name_units(axes: Axes, row: int, spans: pd.DataFrame) -> None:
    end_of_step = axes.get_xlim()[1]
    for span in spans.itertuples():
        if span.end - span.begin > NAMED_PART * end_of_step:
            middle = (span.begin + span.end) / 2
            color = "white" if span.lane == "reduce" else "black"
            axes.text(middle, row, span.unit_name, ha="center", va="center", fontsize=7, color=color, clip_on=True)


def _color_key(spans: pd.DataFrame) -> pd.Series:
    return spans["phase"].astype(str).where(spans["lane"] == "compute", spans["lane"].astype(str))


def _color(name: str) -> str:
    return {**PHASE_COLORS, **LANE_COLORS}.get(name, PALETTE[-1])


def _colors(spans: pd.DataFrame) -> Mapping[str, str]:
    used = set(_color_key(spans))
    known = [name for name in (*PHASE_COLORS, *LANE_COLORS) if name in used]
    return {name: _color(name) for name in [*known, *sorted(used - set(known))]}
