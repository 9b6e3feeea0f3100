"""Published runs beside predictions."""

from pathlib import Path

import pytest

from foreshard_analysis.command import run
from foreshard_analysis.errors import InputError
from foreshard_analysis.figures.validation import validation_figure
from foreshard_analysis.validation import load_validation

HEADER = "source,predicted_tokens_per_s_per_gpu,error_pct,predicted_peak_mem_gib,memory_error_pct\n"


def table(folder: Path, *rows: str) -> Path:
    path = folder / "published.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


@pytest.fixture
def three_runs(tmp_path: Path) -> Path:
    return table(tmp_path, '"a, b",110,10.00,,', "c,80,-20.00,30,50.00", "c,,,,")


def test_what_was_published_follows_from_prediction_and_error(three_runs: Path) -> None:
    rows = load_validation([three_runs])
    assert list(rows["source"]) == ["a, b", "c", "c"]
    assert list(rows["quantity"]) == ["throughput", "throughput", "peak memory"]
    assert list(rows["measured"]) == pytest.approx([100, 100, 20])


def test_each_prediction_is_a_point(three_runs: Path) -> None:
    throughput, memory = validation_figure(load_validation([three_runs])).axes
    points = [
        [(x, y) for line in axes.lines if line.get_marker() == "o" for x, y in zip(*line.get_data(), strict=True)]
        for axes in (throughput, memory)
    ]
    assert [[tuple(map(round, point)) for point in of_panel] for of_panel in points] == [
        [(100, 110), (100, 80)],
        [(20, 30)],
    ]


def test_the_command_prints_errors_and_writes_the_figure(three_runs: Path, tmp_path: Path, capsys) -> None:
    assert run(["validation", str(three_runs), "--out", str(tmp_path / "v.svg")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["throughput", "2", "15.0", "%", "-5.0", "%"]
    assert lines[2] == ["peak", "memory", "1", "50.0", "%", "+50.0", "%"]


def test_tables_without_predictions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row has a prediction"):
        load_validation([table(tmp_path, "a,,,,")])
    (tmp_path / "raw.csv").write_text("source,model\na,b\n")
    with pytest.raises(InputError, match="has no column"):
        load_validation([tmp_path / "raw.csv"])
