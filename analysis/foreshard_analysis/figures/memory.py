"""Live bytes of a rank's arena over time, by class."""

import pandas as pd
from matplotlib.figure import Figure

from foreshard_analysis.figures.style import MEMORY_COLORS, PALETTE, one_axes, plain, time_unit
from foreshard_analysis.memory import memory_classes

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def memory_figure(timeline: pd.DataFrame, arena_bytes: int, title: str) -> Figure:
    """`timeline` as `memory.step_memory` gives it; a line at the arena's size and a mark at the peak."""
    figure, axes = one_axes(10, 4.5)
    scale, unit = unit_of(max(arena_bytes, int(timeline["total"].max())))
    classes = [name for name in memory_classes(timeline) if timeline[name].any()]
    seconds, time_name = time_unit(float(timeline["time_s"].max()))
    times = seconds * timeline["time_s"]
    axes.stackplot(
        times,
        *(timeline[name] / scale for name in classes),
        step="post",
        labels=classes,
        colors=[MEMORY_COLORS.get(name, PALETTE[-1]) for name in classes],
        linewidth=0,
    )
    axes.axhline(arena_bytes / scale, color=PALETTE[-1], linestyle="--", linewidth=1, label="arena")
    peak = timeline.loc[timeline["total"].idxmax()]
    axes.plot(seconds * peak["time_s"], peak["total"] / scale, "v", color=PALETTE[-1])
    axes.annotate(
        f"peak {peak['total'] / scale:.2f} {unit}",
        (seconds * peak["time_s"], peak["total"] / scale),
        xytext=(0, 8),
        textcoords="offset points",
        ha="center",
    )
    axes.set_xlabel(f"time since the step's start, {time_name}")
    axes.set_ylabel(f"live bytes, {unit}")
    axes.set_ylim(0, 1.15 * max(arena_bytes, peak["total"]) / scale)
    axes.set_title(title)
    plain(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return figure


def unit_of(size_bytes: int) -> tuple[int, str]:
    """The largest unit of which `size_bytes` is at least one."""
    return next(((scale, name) for scale, name in UNITS if size_bytes >= scale), UNITS[-1])
