"""Predicted against measured, op by op."""

import pandas as pd
from matplotlib.figure import Figure

from foreshard_analysis.figures.style import LANE_COLORS, PALETTE, equality_lines, one_axes, plain


def comparison_figure(ops: pd.DataFrame, title: str) -> Figure:
    """`ops` as `comparison.joined_ops` gives them: seconds of each op, on logarithmic axes, with the line where both
    are equal and those at twice and half of it."""
    figure, axes = one_axes(6, 5.5)
    shown = ops[(ops["predicted_s"] > 0) & (ops["measured_s"] > 0)]
    for lane, own in shown.groupby("lane", sort=False):
        color = LANE_COLORS.get(str(lane), PALETTE[0])
        axes.plot(own["measured_s"], own["predicted_s"], "o", color=color, alpha=0.6, label=str(lane), linestyle="none")
    both = shown[["predicted_s", "measured_s"]]
    low, high = (float(both.min().min()), float(both.max().max())) if len(shown) else (1e-6, 1.0)
    equality_lines(axes, low, high, tolerance=1)
    axes.set(xscale="log", yscale="log", xlabel="measured, s", ylabel="predicted, s", title=title)
    plain(axes)
    axes.legend(frameon=False)
    return figure
