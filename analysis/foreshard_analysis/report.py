"""A trace as one HTML file that needs nothing beside it: tables, and figures as inline SVG."""

from collections.abc import Iterator
from dataclasses import dataclass

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from foreshard_analysis.breakdown import kind_seconds, lane_seconds, typical_parts
from foreshard_analysis.comparison import joined_ops, part_rows, percent_text, predicted_and_measured
from foreshard_analysis.events import ranks, spans, typical_step
from foreshard_analysis.figures.comparison import comparison_figure
from foreshard_analysis.figures.memory import memory_figure, unit_of
from foreshard_analysis.figures.steps import loss_figure, step_times_figure
from foreshard_analysis.figures.timeline import timeline_figure
from foreshard_analysis.memory import has_buffers, memory_classes, step_memory
from foreshard_analysis.metrics import load_metrics, load_validations, metrics_beside
from foreshard_analysis.summary import load_collectives, load_step_times, load_summary
from foreshard_analysis.trace_file import Trace
from foreshard_analysis.writing import inline_svg

LONGEST_KINDS = 12
Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Section:
    """A heading with a table, a figure, or both below it."""

    title: str
    header: tuple[str, ...] = ()
    rows: Rows | None = None
    svg: Markup | None = None


def report_html(trace: Trace, beside: Trace | None = None) -> str:
    """Of the trace's first rank and a typical step of it; with the run's loss if its metrics lie beside the trace, and
    with the prediction or measurement `beside` it. Raises InputError as `predicted_and_measured` does."""
    rank = ranks(trace)[0]
    sections = list(_sections(trace, rank, typical_step(trace, rank)))
    if beside:
        sections.append(_comparison_section(*predicted_and_measured(trace, beside)))
    return _template().render(info=trace.info, facts=_facts(trace), sections=sections)


def _sections(trace: Trace, rank: int, step: int) -> Iterator[Section]:
    where = f"step {step} of rank {rank}"
    if trace.has("summary"):
        yield Section("The run in a few numbers", ("", ""), _summary_rows(trace))
    yield Section("Where a typical step goes", ("part", "time", "of the step"), _part_rows(typical_parts(trace)))
    yield Section(
        f"Timeline: {where}",
        svg=_svg(timeline_figure(spans(trace, rank, step), "")),
        header=("lane", "busy"),
        rows=_time_rows(lane_seconds(trace)),
    )
    if has_buffers(trace):
        yield _memory_section(trace, rank, step, f"Memory: {where}")
    if trace.has("summary"):
        yield Section("Collectives of a step", ("kind", "count", "payload", "received"), _collectives(trace))
    yield Section("Longest kinds of ops", ("kind", "time"), _time_rows(kind_seconds(trace).head(LONGEST_KINDS)))
    yield from _over_steps(trace)


def _memory_section(trace: Trace, rank: int, step: int, title: str) -> Section:
    memory = step_memory(trace, rank, step)
    figure = memory_figure(memory, trace.info.arena_bytes, "")
    return Section(title, ("class", "live at the peak"), _peak_rows(memory), _svg(figure))


def _comparison_section(predicted: Trace, measured: Trace) -> Section:
    rows: Rows = [
        (row.name, _time(row.predicted_s), _time(row.measured_s), percent_text(row.error))
        for row in part_rows(predicted, measured)
    ]
    figure = comparison_figure(joined_ops(predicted, measured), "")
    return Section("Predicted beside measured", ("part", "predicted", "measured", "error"), rows, _svg(figure))


def _over_steps(trace: Trace) -> Iterator[Section]:
    if trace.has("summary") and len(times := load_step_times(trace)) > 1:
        yield Section("Step times", svg=_svg(step_times_figure(times)))
    metrics = metrics_beside(trace.path)
    if metrics:
        yield Section("Loss", svg=_svg(loss_figure(load_metrics(metrics), load_validations(metrics))))


def _facts(trace: Trace) -> Rows:
    info = trace.info
    return [
        ("kind", info.kind),
        ("run", info.run_id),
        ("ranks", f"{info.world_size:,}"),
        ("parameters", f"{info.parameters:,}"),
        ("tokens of a step", f"{info.tokens_per_step:,}"),
        ("plan", info.plan_hash),
        ("written", f"{info.date} by {info.software}"),
        ("command", info.command_line),
        ("file", str(info.path) + ("" if info.closed else ", not closed by its run")),
    ]


def _summary_rows(trace: Trace) -> Rows:
    summary = load_summary(trace)
    return [
        ("step time, median", _time(summary.step_time_s)),
        ("TFLOP/s of a rank", f"{summary.tflops_per_device:.4g}"),
        ("exposed communication", _time(summary.exposed_comm_s)),
        ("arena", _bytes(summary.arena_bytes)),
        ("arena touched", _bytes(summary.arena_touched_bytes)),
        ("host arena", _bytes(summary.host_arena_bytes)),
        ("process memory", _bytes(summary.rss_bytes)),
    ]


def _part_rows(parts: pd.Series) -> Rows:
    return [(name, _time(value), f"{100 * value / parts['step']:.1f} %") for name, value in parts.items()]


def _time_rows(seconds: pd.Series) -> Rows:
    return [(str(name), _time(value)) for name, value in seconds.items() if value > 0]


def _peak_rows(memory: pd.DataFrame) -> Rows:
    peak = memory.loc[memory["total"].idxmax()]
    return [(name, _bytes(peak[name])) for name in (*memory_classes(memory), "total")]


def _collectives(trace: Trace) -> Rows:
    return [
        (str(row.kind), f"{row.count_:,}", _bytes(row.payload_bytes), _bytes(row.received_bytes))
        for row in load_collectives(trace).rename(columns={"count": "count_"}).itertuples()
    ]


def _time(seconds: float) -> str:
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(seconds) * scale >= 1:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _bytes(count: float) -> str:
    scale, unit = unit_of(int(count))
    return f"{count / scale:.4g} {unit}"


def _svg(figure: Figure) -> Markup:
    return Markup(inline_svg(figure))


def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("foreshard_analysis")
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(
        "report.html.j2"
    )
