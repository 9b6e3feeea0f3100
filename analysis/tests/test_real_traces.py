"""Traces of foreshard-plan and foreshard-train, beside what the commands themselves say of them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from foreshard_analysis.command import run
from foreshard_analysis.comparison import part_rows, predicted_and_measured
from foreshard_analysis.events import load_events, ranks
from foreshard_analysis.memory import memory_classes, memory_timeline
from foreshard_analysis.metrics import load_metrics
from foreshard_analysis.paper_predictions import load_settings
from foreshard_analysis.paper_predictions import predict as predict_point
from foreshard_analysis.summary import load_collectives, load_summary
from foreshard_analysis.trace_file import Trace
from foreshard_analysis.validation import load_validation, scores


def json_of(*command: object) -> dict:
    return json.loads(subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False).stdout)


def test_parts_of_a_step_are_those_of_foreshard_compare(commands: Path, predicted: Path, measured: Path) -> None:
    theirs = json_of(commands / "foreshard-compare", measured, predicted, "--json")
    with Trace(predicted) as one, Trace(measured) as other:
        ours = part_rows(*predicted_and_measured(one, other))
    for row, same in zip(ours, [*theirs["phases"], theirs["step"]], strict=True):
        assert row.name == same["name"]
        assert (row.predicted_s, row.measured_s) == pytest.approx((same["predicted_s"], same["measured_s"]), abs=1e-9)


MICRO_BATCHES = ("--parallel.world_size=4", "--train.global_batch_size=16")
SETTINGS = {
    "each micro-batch reduced": MICRO_BATCHES,
    "gradients added up unsharded": (*MICRO_BATCHES, "--parallel.accumulation=no_sync"),
    "parameters kept": (*MICRO_BATCHES, "--parallel.strategy=shard_grad_op"),
    "moments in host memory": (*MICRO_BATCHES, "--offload.optimizer=true"),
    "on GPUs": (*MICRO_BATCHES, "--machine.cluster=dgx-a100", "--precision.param=bf16"),
}


def test_live_bytes_are_those_that_the_run_recorded(measured: Path) -> None:
    expect_recorded_bytes(measured)


@pytest.mark.parametrize("setting", SETTINGS)
def test_live_bytes_are_those_that_were_predicted(setting: str, predict: Callable[..., Path]) -> None:
    expect_recorded_bytes(predict(*SETTINGS[setting]))


def expect_recorded_bytes(path: Path) -> None:
    """The samples of /memory were taken by the writer, which knows the plan; the timeline follows from the tables."""
    with Trace(path) as trace:
        samples = trace.table("memory")
        timelines = {rank: memory_timeline(trace, rank).set_index("time_ns") for rank in ranks(trace)}
    assert len(samples) > 0
    for _, sample in samples.iterrows():
        live = timelines[sample["rank"]].loc[sample["time_ns"]]
        for name in memory_classes(timelines[sample["rank"]]):
            assert live[name] == sample[f"{name}_bytes"]


def test_the_peak_of_a_predicted_step_fills_the_arena(predicted: Path) -> None:
    with Trace(predicted) as trace:
        assert memory_timeline(trace)["total"].max() == load_summary(trace).arena_bytes


def test_collectives_are_those_of_the_run_folder(run_folder: Path, measured: Path) -> None:
    theirs = json.loads((run_folder / "run.json").read_text())["collectives"]
    with Trace(measured) as trace:
        ours = load_collectives(trace).astype({"kind": str}).set_index("kind")
    for kind, facts in theirs.items():
        assert ours.loc[kind, ["count", "payload_bytes", "received_bytes"]].tolist() == [
            facts["count"], facts["bytes"], facts["received_bytes"]
        ]  # fmt: skip


def test_received_bytes_of_a_step_are_those_of_its_collectives(predicted: Path) -> None:
    with Trace(predicted) as trace:
        assert load_events(trace, 0)["received_bytes"].sum() == load_collectives(trace)["received_bytes"].sum()


def test_the_metrics_have_a_row_for_each_step(run_folder: Path) -> None:
    metrics = load_metrics(run_folder)
    assert list(metrics["step"]) == list(range(1, 9))
    assert metrics["loss"].between(1, 7).all()


def test_every_command_works_on_them(predicted: Path, measured: Path, tmp_path: Path) -> None:
    for name in ("timeline", "memory"):
        for trace in (predicted, measured):
            out = tmp_path / f"{name}-{trace.stem}.svg"
            assert run([name, str(trace), "--out", str(out)]) == 0 and out.stat().st_size > 1000
    assert run(["compare", str(predicted), str(measured), "--out", str(tmp_path / "c.svg")]) == 0
    assert run(["scaling", str(predicted), str(measured), "--out", str(tmp_path / "s.svg")]) == 0
    for trace in (predicted, measured):
        assert run(["report", str(trace), "--out", str(tmp_path / f"{trace.stem}.html")]) == 0


def test_scores_of_published_runs_are_those_of_foreshard_plan(commands: Path, tmp_path: Path) -> None:
    published = Path(__file__).parents[2] / "tests/data/measurements/torchtitan.csv"
    theirs = json_of(commands / "foreshard-plan", "validate", published, "--json", "--out", tmp_path)
    throughput, memory = scores(load_validation([tmp_path / published.name]))
    for score, name, rows in ((throughput, "throughput", "rows_used"), (memory, "memory", "memory_rows_used")):
        assert score.rows == theirs[rows]
        expected = theirs[f"{name}_mape_pct"], theirs[f"{name}_bias_pct"]
        assert (score.mean_absolute_error, score.bias) == pytest.approx(expected, abs=0.01)


def test_each_figure_with_predictions_can_be_predicted(commands: Path) -> None:
    settings = {setting.figure: setting for setting in load_settings()}
    for setting in settings.values():
        value = predict_point(commands / "foreshard-plan", setting).value
        assert value == "out of memory" or float(value) > 0
