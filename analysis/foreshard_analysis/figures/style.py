"""What all figures share: colours of lanes, phases and classes of memory, and an empty figure."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PALETTE = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222222")
"""Paul Tol's "bright" scheme, safe for colour-blind readers, and near-black."""

PHASE_COLORS = {"forward": PALETTE[0], "backward": PALETTE[1], "update": PALETTE[2]}
LANE_COLORS = {"gather": PALETTE[3], "reduce": PALETTE[5], "replicate": PALETTE[4], "copy": PALETTE[6]}
MEMORY_COLORS = {
    "parameters": PALETTE[0],
    "gradients": PALETTE[1],
    "optimizer": PALETTE[2],
    "gathered": PALETTE[3],
    "unsharded_gradients": PALETTE[5],
    "activations": PALETTE[4],
    "batch": PALETTE[6],
}


EXPOSED_COLOR = PALETTE[-1]


def one_axes(width: float = 8, height: float = 4.5) -> tuple[Figure, Axes]:
    """An empty figure (inches) with one pair of axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def plain(axes: Axes) -> None:
    """Without the frame's upper and right edge, with a light grid behind what is drawn."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def equality_lines(axes: Axes, low: float, high: float, tolerance: float) -> None:
    """From `low` to `high`: where y = x, and where y is off by a part `tolerance` of x, up or down."""
    for factor, style in ((1, "-"), (1 + tolerance, ":"), (1 / (1 + tolerance), ":")):
        axes.plot([low, high], [factor * low, factor * high], style, color=PALETTE[-1], linewidth=0.8)


def color_of(index: int) -> str:
    return PALETTE[index % len(PALETTE)]


def time_unit(longest_s: float) -> tuple[float, str]:
    """By what to multiply seconds, and the unit that this gives, so that the longest is at least one."""
    for scale, name in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if longest_s * scale >= 1:
            return scale, name
    return 1e9, "ns"
