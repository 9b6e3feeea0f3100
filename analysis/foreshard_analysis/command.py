"""The command line: what each subcommand reads, draws and writes."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from foreshard_analysis.comparison import comparison_text, joined_ops, part_rows, predicted_and_measured
from foreshard_analysis.errors import ExitCode, InputError, usage
from foreshard_analysis.events import spans, typical_step
from foreshard_analysis.figures.comparison import comparison_figure
from foreshard_analysis.figures.memory import memory_figure
from foreshard_analysis.figures.paper import paper_figure
from foreshard_analysis.figures.scaling import scaling_figure
from foreshard_analysis.figures.timeline import timeline_figure
from foreshard_analysis.figures.validation import validation_figure
from foreshard_analysis.memory import step_memory
from foreshard_analysis.paper import FIGURES, PREDICTIONS, load_points, load_predictions, relative_errors
from foreshard_analysis.paper_predictions import (
    CannotPredict,
    NoSuchRuntime,
    Prediction,
    load_settings,
    predict,
    table_of,
)
from foreshard_analysis.report import report_html
from foreshard_analysis.scaling import load_scaling, scaling_text
from foreshard_analysis.trace_file import Trace
from foreshard_analysis.validation import load_validation, validation_text
from foreshard_analysis.writing import FORMATS, write_figure, write_text

PROGRAM = "foreshard-analysis"


def run(arguments: Sequence[str]) -> int:
    """Exit code of the command; messages go to stderr."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except InputError as error:
        print(error.block(PROGRAM), file=sys.stderr)
        return int(error.code)
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stdout = None  # type: ignore[assignment]
        return int(ExitCode.FAILED)
    except OSError as error:
        print(f"{PROGRAM}: error: {error}\n  where:  exit code 1", file=sys.stderr)
        return int(ExitCode.FAILED)


def _timeline(options: argparse.Namespace) -> int:
    with Trace(options.trace) as trace:
        step = typical_step(trace, options.rank) if options.step is None else options.step
        figure = timeline_figure(spans(trace, options.rank, step), _title(trace, options.rank, step))
    return _written(options, _out(options, "timeline.svg"), figure)


def _memory(options: argparse.Namespace) -> int:
    with Trace(options.trace) as trace:
        step = typical_step(trace, options.rank) if options.step is None else options.step
        memory = step_memory(trace, options.rank, step)
        figure = memory_figure(memory, trace.info.arena_bytes, _title(trace, options.rank, step))
    return _written(options, _out(options, "memory.svg"), figure)


def _compare(options: argparse.Namespace) -> int:
    with Trace(options.predicted) as one, Trace(options.measured) as other:
        predicted, measured = predicted_and_measured(one, other)
        print(comparison_text(part_rows(predicted, measured)))
        ops = joined_ops(predicted, measured)
    figure = comparison_figure(ops, f"{len(ops)} ops of plan {predicted.info.plan_hash}")
    return _written(options, _out(options, "compare.svg"), figure)


def _scaling(options: argparse.Namespace) -> int:
    points = load_scaling(options.traces)
    print(scaling_text(points))
    return _written(options, _out(options, "scaling.svg"), scaling_figure(points))


def _report(options: argparse.Namespace) -> int:
    with ExitStack() as opened:
        traces = [opened.enter_context(Trace(path)) for path in (options.trace, options.beside) if path]
        html = report_html(*traces)
    path = _out(options, "report.html")
    write_text(path, html, options.force)
    print(f"wrote {path}")
    return ExitCode.DONE


def _validation(options: argparse.Namespace) -> int:
    rows = load_validation(options.tables)
    print(validation_text(rows))
    return _written(options, _out(options, "validation.svg"), validation_figure(rows))


def _paper(options: argparse.Namespace) -> int:
    points, predictions = load_points(), load_predictions(options.predictions)
    print(f"{'figure':<8}{'published':>10}{'predicted':>10}{'mean |error|':>14}{'worst':>9}  {'runtime':<28}file")
    for spec in FIGURES:
        own, predicted = (table[table["figure"] == spec.key] for table in (points, predictions))
        path = options.out / f"figure-{spec.key}.{options.format}"
        write_figure(path, paper_figure(spec, points, predictions), force=True)
        errors = relative_errors(own, predicted)
        mean, worst = (f"{100 * e:.1f} %" if len(errors) else "-" for e in (errors.abs().mean(), errors.abs().max()))
        runtime = ", ".join(predicted["runtime"].unique()) or "-"
        print(f"{spec.key:<8}{len(own):>10}{len(predicted):>10}{mean:>14}{worst:>9}  {runtime:<28}{path}")
    return ExitCode.DONE


def _predict_paper(options: argparse.Namespace) -> int:
    made: list[Prediction] = []
    settings, refused = load_settings(), 0
    for setting in settings:
        try:
            made.append(predict(options.plan, setting))
        except CannotPredict as error:
            refused += not isinstance(error, NoSuchRuntime)
            print(f"{setting.figure}, {setting.series}, x = {setting.x}: {error}", file=sys.stderr)
    write_text(options.out, table_of(made), force=True)
    print(f"{len(made)} of {len(settings)} points predicted: {options.out}")
    return ExitCode.FAILED if refused else ExitCode.DONE


def _title(trace: Trace, rank: int, step: int) -> str:
    info = trace.info
    run = info.kind if info.run_id == info.kind else f"{info.run_id}, {info.kind}"
    return f"{run}: step {step} of rank {rank} of {info.world_size}"


def _out(options: argparse.Namespace, default: str) -> Path:
    """What to write, which is none of the files that were read."""
    path = options.out if options.out else Path(default)
    if any(path.exists() and path.samefile(name) for name in _inputs(options)):
        raise usage(f"{path} is read and would be overwritten", "another name for --out")
    return path


def _inputs(options: argparse.Namespace) -> list[Path]:
    given = vars(options)
    single = [given[key] for key in ("trace", "beside", "predicted", "measured") if given.get(key)]
    return [Path(name) for name in (*single, *given.get("traces", ()), *given.get("tables", ()))]


def _written(options: argparse.Namespace, path: Path, figure) -> int:
    write_figure(path, figure, options.force)
    print(f"wrote {path}")
    return ExitCode.DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Draws what is in Foreshard's traces, predicted or measured.",
        epilog="Exit codes: 0 done, 1 failed while running, 2 usage, 4 the two plans differ, 5 a file is unreadable.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_step_command(commands, "timeline", "one step of one rank, by lane", _timeline)
    _add_step_command(commands, "memory", "live bytes of one rank's arena during one step", _memory)
    compare = _add(commands, "compare", "a prediction beside its measurement", _compare)
    compare.add_argument("predicted", metavar="PREDICTED")
    compare.add_argument("measured", metavar="MEASURED")
    scaling = _add(commands, "scaling", "speed by number of ranks, of several runs", _scaling)
    scaling.add_argument("traces", metavar="FILE.h5", nargs="+")
    text = "published runs beside predictions, of tables that foreshard-plan validate --out wrote"
    _add(commands, "validation", text, _validation).add_argument("tables", type=Path, metavar="FILE.csv", nargs="+")
    report = _add(commands, "report", "one HTML file with everything", _report)
    report.add_argument("trace", metavar="FILE.h5")
    report.add_argument("--beside", metavar="OTHER.h5", help="prediction of a measured trace, or the other way round")
    _add_paper_commands(commands)
    return parser


def _add(commands, name: str, text: str, action) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.set_defaults(action=action)
    command.add_argument("--out", type=Path, metavar="FILE", help=f"what to write, {', '.join(FORMATS)} or html")
    command.add_argument("--force", action="store_true", help="overwrite a file that exists")
    return command


def _add_step_command(commands, name: str, text: str, action) -> None:
    command = _add(commands, name, text, action)
    command.add_argument("trace", metavar="FILE.h5")
    command.add_argument("--rank", type=int, default=0, help="default: 0")
    command.add_argument("--step", type=int, help="default: the one of median duration, without the warm-up")


def _add_paper_commands(commands) -> None:
    text = "figures of the FSDP paper (arXiv 2304.11277) with our predictions over its points"
    paper = commands.add_parser("paper", help=text, description=text)
    paper.set_defaults(action=_paper)
    paper.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder of the figures")
    paper.add_argument("--format", choices=FORMATS, default="svg")
    paper.add_argument("--predictions", type=Path, default=PREDICTIONS, help="table to draw; default: the package's")
    text = "makes the table of predictions for `paper` anew, with foreshard-plan"
    remake = commands.add_parser("predict-paper", help=text, description=text)
    remake.set_defaults(action=_predict_paper)
    remake.add_argument("--plan", default="foreshard-plan", help="path of foreshard-plan")
    remake.add_argument("--out", type=Path, default=PREDICTIONS, help="table to write; default: the package's")
