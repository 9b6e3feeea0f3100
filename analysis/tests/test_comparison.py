"""Predictions beside measurements, and scaling, by hand."""

from pathlib import Path

import pytest

from foreshard_analysis.comparison import joined_ops, part_rows, predicted_and_measured
from foreshard_analysis.errors import ExitCode, InputError
from foreshard_analysis.scaling import efficiency, load_scaling
from foreshard_analysis.trace_file import Trace
from hand_written import STEP_NS, Step, events_of_step, one_step, write_trace


def stretched(path: Path, factor: int, **attributes: object) -> Path:
    return write_trace(path, events_of_step(stretch=factor), [Step(0, factor * STEP_NS)], **attributes)


def test_a_step_three_times_as_fast_is_off_by_two_thirds_everywhere(tmp_path: Path) -> None:
    slow, fast = stretched(tmp_path / "m.h5", 3), one_step(tmp_path / "p.h5", kind="predicted")
    with Trace(slow) as one, Trace(fast) as other:
        predicted, measured = predicted_and_measured(one, other)
        assert (predicted.path, measured.path) == (fast, slow)
        rows = part_rows(predicted, measured)
        ops = joined_ops(predicted, measured)
    assert [row.name for row in rows] == ["forward", "backward", "exposed communication", "update", "idle", "step"]
    assert [row.error for row in rows] == pytest.approx([1 / 3 - 1] * 6)
    assert list(ops["measured_s"] / ops["predicted_s"]) == pytest.approx([3] * 5)
    assert list(ops["lane"]) == ["gather", "compute", "compute", "reduce", "compute"]


@pytest.mark.parametrize(
    ("kind", "plan_hash", "code"), [("measured", "00ff", ExitCode.USAGE), ("predicted", "beef", ExitCode.OUTSIDE)]
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, kind: str, plan_hash: str, code: ExitCode) -> None:
    one, other = one_step(tmp_path / "a.h5"), one_step(tmp_path / "b.h5", kind=kind, plan_hash=plan_hash)
    with Trace(one) as a, Trace(other) as b, pytest.raises(InputError) as caught:
        predicted_and_measured(a, b)
    assert caught.value.code == code


def test_equal_step_times_are_perfect_scaling_and_a_kind_has_its_own_base(tmp_path: Path) -> None:
    names = [(2, "measured"), (8, "measured"), (4, "predicted")]
    paths = [one_step(tmp_path / f"{size}.h5", world_size=size, kind=kind) for size, kind in names]
    points = load_scaling(paths[::-1])
    assert [point.world_size for point in points] == [2, 8, 4]
    assert points[1].tokens_per_s == pytest.approx(8 * 64 / (1e-6 * STEP_NS))
    assert efficiency(points) == pytest.approx([1, 1, 1])
