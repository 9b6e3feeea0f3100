"""The paper's figures: that the tables agree with one another, and that what is drawn is what they hold."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from foreshard_analysis.errors import InputError
from foreshard_analysis.figures.paper import NOT_YET, paper_figure
from foreshard_analysis.paper import (
    FIGURES,
    KEY,
    POINT_COLUMNS,
    PREDICTION_COLUMNS,
    joined,
    load_points,
    load_predictions,
    relative_errors,
)
from foreshard_analysis.paper_predictions import CannotPredict, NoSuchRuntime, load_settings, predict, table_of

SPECS = {spec.key: spec for spec in FIGURES}


def table(path: Path, columns: list[str], *rows: str) -> Path:
    path.write_text("\n".join([",".join(columns), *rows]) + "\n")
    return path


def text_of(figure: Figure) -> str:
    """All that is written in it, legends included."""
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())]
    return "\n".join(text.get_text() for part in (figure, *legends) for text in part.findobj(Text))


def points_of(folder: Path, *rows: str):
    return load_points(
        table(folder / "points.csv", POINT_COLUMNS, *(f"{row},q,{end}" for row, end in map(_split, rows)))
    )


def predictions_of(folder: Path, *rows: str):
    lines = (f"{row},{value},u,our runtime,eager,--x" for row, value in map(_split, rows))
    return load_predictions(table(folder / "predictions.csv", PREDICTION_COLUMNS, *lines))


def _split(row: str) -> tuple[str, str]:
    """("7b,,batch 1,128", "170") of "7b,,batch 1,128=170"; of a point with the rest of its columns."""
    key, value = row.split("=")
    return key, value


def _point(key: str, value: float | str) -> str:
    return f"{key}={value},u,digitised,0.3,,somewhere"


@pytest.fixture
def two_series(tmp_path: Path):
    keys = ["7b,,batch 1,128", "7b,,batch 1,256", "7b,,batch 2,128"]
    points = points_of(tmp_path, *(_point(key, value) for key, value in zip(keys, (100, 200, 90), strict=True)))
    predictions = predictions_of(tmp_path, "7b,,batch 1,128=110", "7b,,batch 1,256=150")
    return points, predictions


def test_every_point_belongs_to_a_figure_and_every_figure_has_points() -> None:
    assert set(load_points()["figure"]) == set(SPECS)


def test_no_point_is_published_twice() -> None:
    assert not load_points().duplicated(KEY).any()


def test_spot_values_of_the_paper() -> None:
    points = load_points().set_index(KEY)
    assert points.loc[("6a", "T5-11.3B", "full sharding", 11.3e9), "value"] == 148.48
    assert points.loc[("6a", "T5-11.3B", "DDP", 11.3e9), "out_of_memory"]
    assert points.loc[("7b", "", "batch 2", 128), "value"] == 90
    assert points.loc[("8c", "batch 16", "reserved", 512), "value"] == 47


def test_every_prediction_is_of_a_published_point_in_its_unit() -> None:
    points, predictions = load_points().set_index(KEY), load_predictions().set_index(KEY)
    assert (
        len(predictions) > 0 and predictions.index.isin(points.index).all() and not predictions.index.duplicated().any()
    )
    assert (predictions["unit"] == points.loc[predictions.index, "unit"]).all()


def test_the_committed_predictions_are_those_of_the_settings() -> None:
    settings = {(s.figure, s.group, s.series, float(s.x)): " ".join(s.arguments) for s in load_settings()}
    predicted = set(load_predictions().set_index(KEY).index)
    assert predicted <= set(settings)
    assert all("pytorch-ddp" in settings[point] for point in set(settings) - predicted)


@pytest.mark.parametrize(("key", "most"), [("6a", 0.1), ("6b", 0.05), ("7b", 0.05), ("7c", 0.05), ("8b", 0.06)])
def test_every_prediction_of_a_figure_is_near_its_point(key: str, most: float) -> None:
    points = load_points()
    errors = relative_errors(points[points["figure"] == key], load_predictions())
    assert len(errors) > 5 and errors.abs().max() < most


def test_who_runs_out_of_memory_is_predicted() -> None:
    points, predictions = load_points().set_index(KEY), load_predictions().set_index(KEY)
    assert points.loc[predictions.index, "out_of_memory"].equals(predictions["out_of_memory"])


def test_what_the_limiter_gains_is_predicted() -> None:
    both = joined(load_points(), load_predictions()).xs("6c", level="figure").swaplevel("series", "x")
    ratios = both.xs("no limit", level="series") / both.xs("limit", level="series")
    assert len(ratios) == 6 and ((ratios["predicted"] / ratios["published"] - 1).abs() < 0.06).all()


def test_strategies_are_in_the_published_order_on_512_gpus() -> None:
    both = joined(load_points(), load_predictions()).xs(("7a", 512.0), level=("figure", "x"))
    assert both["predicted"].rank().equals(both["published"].rank())


def test_errors_are_of_points_with_a_prediction(two_series) -> None:
    assert len(joined(*two_series)) == 2
    assert relative_errors(*two_series).tolist() == pytest.approx([0.1, -0.25])


def test_both_curves_are_drawn_and_what_is_missing_is_said(two_series) -> None:
    figure = paper_figure(SPECS["7b"], *two_series)
    (axes,) = figure.axes
    drawn = {(line.get_marker(), tuple(line.get_ydata())) for line in axes.lines if len(line.get_ydata())}
    assert {("o", (100, 200)), ("o", (90,)), ("x", (110, 150))} <= drawn
    text = text_of(figure)
    assert f"batch 2 ({NOT_YET})" in text and f"batch 1 ({NOT_YET})" not in text
    assert "our runtime" in text and "eager" in text and "somewhere" in text


def test_a_predicted_failure_is_said_not_drawn(tmp_path: Path, two_series) -> None:
    predictions = predictions_of(tmp_path, "7b,,batch 1,128=out of memory")
    assert "out of memory" in text_of(paper_figure(SPECS["7b"], two_series[0], predictions))


@pytest.mark.parametrize("key", SPECS)
def test_each_figure_says_so_without_predictions_and_not_with_one_of_each_point(key: str, tmp_path: Path) -> None:
    points = load_points()
    none = load_predictions().iloc[:0]
    assert NOT_YET in text_of(paper_figure(SPECS[key], points, none))
    own = points[(points["figure"] == key) & ~points["out_of_memory"]]
    all_of_them = own.assign(runtime="ours", assumes="", arguments="")[[*PREDICTION_COLUMNS, "out_of_memory"]]
    assert NOT_YET not in text_of(paper_figure(SPECS[key], points, all_of_them))


def test_bars_stand_in_clusters_with_the_prediction_on_them(tmp_path: Path) -> None:
    points = points_of(tmp_path, _point("6c,A,limit,2", 10), _point("6c,A,no limit,2", 30), _point("6c,B,limit,4", 20))
    (axes,) = paper_figure(SPECS["6c"], points, predictions_of(tmp_path, "6c,B,limit,4=25")).axes
    heights = [round(bar.get_height()) for bar in axes.patches]
    assert heights == [10, 20, 30, 0]
    marks = [value for line in axes.lines for value in line.get_ydata() if value == value]
    assert marks == [25]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["A\n2 machines", "B\n4 machines"]


@pytest.mark.parametrize(
    ("published", "predicted", "said"),
    [
        ("out of memory", 5, " out of memory"),
        ("out of memory", "out of memory", " out of memory, as predicted"),
        (5, "out of memory", " predicted: out of memory"),
        (5, 5, ""),
    ],
)
def test_bars_say_who_ran_out_of_memory(tmp_path: Path, published: object, predicted: object, said: str) -> None:
    points = points_of(tmp_path, _point("6a,A,DDP,1", published))
    (axes,) = paper_figure(SPECS["6a"], points, predictions_of(tmp_path, f"6a,A,DDP,1={predicted}")).axes
    assert [text.get_text() for text in axes.texts] == [said]


@pytest.mark.parametrize(("text", "seen"), [("7b,,s,many=1", "many"), ("7b,,s,1=fast", "fast")])
def test_what_is_not_a_number_is_named(tmp_path: Path, text: str, seen: str) -> None:
    with pytest.raises(InputError, match=seen):
        predictions_of(tmp_path, text)


def test_tables_with_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no column"):
        load_predictions(table(tmp_path / "t.csv", ["figure", "value"], "7b,1"))
    with pytest.raises(InputError, match="no such file"):
        load_predictions(tmp_path / "none.csv")


# What follows asks a script that stands for foreshard-plan.


def stand_in(folder: Path, answer: str, code: int = 0) -> Path:
    path = folder / "plan"
    path.write_text(
        f"#!/bin/sh\necho \"$@\" > {folder}/asked\ncat <<'END'\n{answer}\nEND\necho refused >&2\nexit {code}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def setting_of(folder: Path, reads: str, scale: float = 1):
    points = folder / "points.csv"
    table(points, POINT_COLUMNS, "7b,,batch 1,128,q,100,TFLOPS/GPU,digitised,0.3,,somewhere")
    models = table(folder / "models.csv", ["model", "arguments", "assumes"], "big,--a=1 --b=2,eager")
    columns = [*KEY, "model", "arguments", "reads", "scale"]
    settings = table(folder / "settings.csv", columns, f"7b,,batch 1,128,big,--c=3,{reads},{scale}")
    return load_settings(settings, models, points)[0]


def test_a_setting_is_asked_with_all_its_arguments_and_read_at_its_place(tmp_path: Path) -> None:
    answer = json.dumps({"gpu": {"fits": True, "runtime": "ours"}, "sizes": [{"time_s": 0.25}]})
    made = predict(stand_in(tmp_path, answer), setting_of(tmp_path, "sizes.0.time_s", 1000))
    assert (tmp_path / "asked").read_text().split() == ["--a=1", "--b=2", "--c=3", "--json"]
    assert (made.value, made.unit, made.runtime, made.assumes) == ("250", "TFLOPS/GPU", "ours", "eager")
    assert load_predictions(_saved(tmp_path, table_of([made])))["value"].tolist() == [250]


@pytest.mark.parametrize("answer", [{"gpu": {"fits": False, "runtime": "ours"}}, {"fits": False, "runtime": "ours"}])
def test_what_does_not_fit_is_out_of_memory(tmp_path: Path, answer: dict) -> None:
    made = predict(stand_in(tmp_path, json.dumps(answer | {"speed": 3}), 3), setting_of(tmp_path, "speed"))
    assert made.runtime == "ours"
    assert load_predictions(_saved(tmp_path, table_of([made])))["out_of_memory"].all()


@pytest.mark.parametrize(("answer", "code", "seen"), [("{}", 2, "refused"), ("{}", 0, "no speed"), ("oops", 0, "JSON")])
def test_what_cannot_be_predicted_is_said(tmp_path: Path, answer: str, code: int, seen: str) -> None:
    with pytest.raises(CannotPredict, match=seen):
        predict(stand_in(tmp_path, answer, code), setting_of(tmp_path, "speed"))


def test_a_runtime_that_is_not_there_is_told_from_other_refusals(tmp_path: Path) -> None:
    setting = setting_of(tmp_path, "speed")
    plan = tmp_path / "plan"
    plan.write_text("#!/bin/sh\necho '--runtime.profile: `x` is not one of , y.' >&2\nexit 2\n")
    plan.chmod(plan.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(NoSuchRuntime, match="not one of"):
        predict(plan, setting)


def test_models_of_the_package_are_named_by_a_place_holder(tmp_path: Path) -> None:
    setting = replace(setting_of(tmp_path, "speed"), arguments=("--model.config={models}/dhen.json",))
    made = predict(stand_in(tmp_path, json.dumps({"speed": 1})), setting)
    (config, _) = (tmp_path / "asked").read_text().split()
    assert Path(config.split("=")[1]).is_file()
    assert made.arguments == "'--model.config={models}/dhen.json'"


def test_settings_of_no_published_point_or_model_are_refused(tmp_path: Path) -> None:
    setting_of(tmp_path, "speed")
    paths = [tmp_path / f"{name}.csv" for name in ("settings", "models", "points")]
    text = paths[0].read_text()
    for old, new, seen in (("128", "129", "not published"), (",big,", ",small,", "small")):
        paths[0].write_text(text.replace(old, new))
        with pytest.raises(InputError, match=seen):
            load_settings(*paths)


def _saved(folder: Path, text: str) -> Path:
    (folder / "made.csv").write_text(text)
    return folder / "made.csv"
