"""Speed by number of ranks, beside the line that perfect scaling would follow."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from foreshard_analysis.figures.style import PALETTE, one_axes, plain
from foreshard_analysis.scaling import ScalingPoint, ideal

STYLES = {"measured": ("o-", PALETTE[0]), "predicted": ("s--", PALETTE[1])}


def scaling_figure(points: Sequence[ScalingPoint]) -> Figure:
    """Points of each kind in order of ranks; the ideal line starts at the first measured one, else at the first."""
    figure, axes = one_axes(6.5, 4.5)
    sizes = sorted({point.world_size for point in points})
    base = min(points, key=lambda point: (point.kind != "measured", point.world_size))
    axes.plot(sizes, [ideal(base, size) for size in sizes], "-", color=PALETTE[6], label="ideal")
    for kind, (style, color) in STYLES.items():
        own = [point for point in points if point.kind == kind]
        if own:
            axes.plot([p.world_size for p in own], [p.tokens_per_s for p in own], style, color=color, label=kind)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel="ranks", ylabel="tokens per second, all ranks", title="Scaling")
    plain(axes)
    axes.legend(frameon=False)
    return figure
