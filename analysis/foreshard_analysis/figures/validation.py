"""Predicted against published, a panel for each quantity."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foreshard_analysis.figures.style import color_of, equality_lines, plain
from foreshard_analysis.validation import QUANTITIES, Quantity

MARKERS = "osD"
TOLERANCE = 0.1


def validation_figure(rows: pd.DataFrame) -> Figure:
    """`rows` as `validation.load_validation` gives them; lines where both are equal, and 10 % off."""
    shown = [quantity for quantity in QUANTITIES if (rows["quantity"] == quantity.name).any()]
    sources = sorted(rows["source"].unique())
    figure = Figure(figsize=(3.5 + 5 * len(shown), 5.2), layout="constrained")
    for axes, quantity in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        _draw_panel(axes, rows[rows["quantity"] == quantity.name], quantity, sources)
    handles, labels = _legend(figure.axes)
    figure.axes[-1].legend(handles, labels, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame, quantity: Quantity, sources: list[str]) -> None:
    for index, source in enumerate(sources):
        own = rows[rows["source"] == source]
        marker = MARKERS[index // 8 % len(MARKERS)]
        if len(own):
            axes.plot(
                own["measured"],
                own["predicted"],
                marker,
                color=color_of(index),
                alpha=0.6,
                markersize=4,
                linestyle="none",
                label=source,
            )
    both = rows[["predicted", "measured"]]
    equality_lines(axes, float(both.min().min()), float(both.max().max()), TOLERANCE)
    axes.set(xscale="log", yscale="log", title=f"{quantity.name}, {len(rows)} runs")
    axes.set(xlabel=f"published, {quantity.unit}", ylabel=f"predicted, {quantity.unit}")
    plain(axes)


def _legend(panels: list[Axes]) -> tuple[list, list]:
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    labels = sorted(entries)
    return [entries[label] for label in labels], labels
