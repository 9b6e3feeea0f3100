"""The FSDP paper's figures, with our prediction drawn over the published points."""

from textwrap import fill

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from foreshard_analysis.figures.style import PALETTE, color_of, plain
from foreshard_analysis.paper import PaperFigure

NOT_YET = "no prediction yet"
PUBLISHED = {"marker": "o", "linestyle": "-", "linewidth": 0.8, "markersize": 5}
PREDICTED = {"marker": "x", "linestyle": "--", "linewidth": 1.2, "markersize": 7}
BAR_GAP = 0.2
FAILURES = {
    (False, False): "",
    (True, False): " out of memory",
    (False, True): " predicted: out of memory",
    (True, True): " out of memory, as predicted",
}
"""What a bar says of a run that failed and of one that was predicted to."""
CHARACTERS_PER_INCH = 15


def paper_figure(spec: PaperFigure, points: pd.DataFrame, predictions: pd.DataFrame) -> Figure:
    """Points and predictions are those of `paper.load_points` and `.load_predictions`; rows of other figures are
    passed over. What has no prediction says so."""
    own, predicted = (table[table["figure"] == spec.key] for table in (points, predictions))
    draw = _draw_lines if spec.kind == "lines" else _draw_bars
    figure = draw(spec, own, predicted)
    figure.suptitle(f"Figure {spec.key}: {spec.title}")
    width = int(CHARACTERS_PER_INCH * figure.get_figwidth())
    figure.supxlabel(fill(_footnote(own, predicted), width), fontsize=8, color="#555555")
    return figure


def _draw_lines(spec: PaperFigure, points: pd.DataFrame, predictions: pd.DataFrame) -> Figure:
    groups = list(points["group"].unique())
    figure = Figure(figsize=(1.5 + 5.5 * len(groups), 5), layout="constrained")
    series = list(points["series"].unique())
    all_axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, group in zip(all_axes, groups, strict=True):
        of_group = predictions[predictions["group"] == group]
        _draw_panel(axes, spec, points[points["group"] == group], of_group, series)
        axes.set_title(group, fontsize=10)
    all_axes[0].set_ylim(bottom=0)
    all_axes[0].set_ylabel(spec.y_label)
    all_axes[-1].legend(handles=_handles(series, predictions), loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return figure


def _draw_panel(axes: Axes, spec: PaperFigure, points: pd.DataFrame, predictions: pd.DataFrame, series: list) -> None:
    for index, name in enumerate(series):
        color = color_of(index)
        own, predicted = (_of_series(table, name) for table in (points, predictions))
        error = pd.to_numeric(own["reading_error"])
        axes.errorbar(own["x"], own["value"], yerr=error, color=color, elinewidth=0.8, **PUBLISHED)
        axes.plot(predicted["x"], predicted["value"], color=color, **PREDICTED)
        _mark_out_of_memory(axes, predicted, color)
    axes.set_xscale("log", base=2)
    ticks = sorted(points["x"].unique())
    axes.set_xticks(ticks, [_short(x) for x in ticks])
    axes.minorticks_off()
    axes.set_xlabel(spec.x_label)
    plain(axes)
    _say_if_nothing(axes, predictions, 0.1)


def _draw_bars(spec: PaperFigure, points: pd.DataFrame, predictions: pd.DataFrame) -> Figure:
    clusters = list(points[["group", "x"]].drop_duplicates().itertuples(index=False, name=None))
    series = list(points["series"].unique())
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    width = (1 - BAR_GAP) / len(series)
    for index, name in enumerate(series):
        places = [place + (index - (len(series) - 1) / 2) * width for place in range(len(clusters))]
        own, predicted = (_by_cluster(table, name, clusters) for table in (points, predictions))
        _draw_bar_series(axes, places, width, color_of(index), own, predicted)
    axes.set_xticks(range(len(clusters)), [_cluster_name(spec, group, x) for group, x in clusters])
    axes.set_ylabel(spec.y_label)
    plain(axes)
    axes.legend(handles=_handles(series, predictions, {}), loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    _say_if_nothing(axes, predictions, 0.9)
    return figure


def _draw_bar_series(
    axes: Axes, places: list[float], width: float, color: str, points: pd.DataFrame, predictions: pd.DataFrame
) -> None:
    axes.bar(places, points["value"].fillna(0), width, color=color, alpha=0.6)
    axes.plot(places, predictions["value"], "x", color=PALETTE[-1], markersize=9, markeredgewidth=2)
    failures = zip(places, points["out_of_memory"], predictions["out_of_memory"], strict=True)
    for place, failed, predicted_to_fail in failures:
        text = FAILURES[failed is True, predicted_to_fail is True]
        axes.text(place, 0, text, rotation=90, ha="center", va="bottom", fontsize=8)


def _by_cluster(table: pd.DataFrame, series: str, clusters: list) -> pd.DataFrame:
    own = _of_series(table, series).set_index(["group", "x"])
    return own.reindex(pd.MultiIndex.from_tuples(clusters, names=["group", "x"]))


def _of_series(table: pd.DataFrame, series: str) -> pd.DataFrame:
    return table[table["series"] == series].sort_values("x")


def _mark_out_of_memory(axes: Axes, predictions: pd.DataFrame, color: str) -> None:
    for x in predictions.loc[predictions["out_of_memory"], "x"]:
        axes.annotate(
            "predicted:\nout of memory",
            (x, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=color,
        )


def _say_if_nothing(axes: Axes, predictions: pd.DataFrame, height: float) -> None:
    if predictions.empty:
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        axes.text(0.5, height, NOT_YET, transform=axes.transAxes, ha="center", fontsize=16, color="#888888", bbox=box)


def _handles(series: list[str], predictions: pd.DataFrame, published: dict = PUBLISHED) -> list[Artist]:
    """What each colour means, and whether that series lacks a prediction where others have one; then the styles."""
    missing = set(series) - set(predictions["series"]) if len(predictions) else set()
    names = [f"{name} ({NOT_YET})" if name in missing else name for name in series]
    handles: list[Artist] = [Patch(color=color_of(index), label=name) for index, name in enumerate(names)]
    styles = {"published": published, "predicted": PREDICTED if len(predictions) else {}}
    return handles + [Line2D([], [], color=PALETTE[-1], label=name, **style) for name, style in styles.items() if style]


def _footnote(points: pd.DataFrame, predictions: pd.DataFrame) -> str:
    lines = [f"Published: {'; '.join(points['source'].unique())}, {' and '.join(points['mark'].unique())}."]
    if len(predictions):
        assumed = "; ".join(text for text in predictions["assumes"].unique() if text)
        runtimes = ", ".join(predictions["runtime"].unique())
        lines.append(f"Predicted: {runtimes}" + (f"; assumed: {assumed}." if assumed else "."))
    return " ".join(lines).replace("bar_label", "bars' labels")


def _cluster_name(spec: PaperFigure, group: str, x: float) -> str:
    return f"{group}\n{x:g} {spec.x_label}" if spec.x_label else group


def _short(x: float) -> str:
    return f"{x // 1e6:.0f}M" if x >= 1e6 else f"{x:g}"
