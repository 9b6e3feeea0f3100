"""Which file is read, and what is said of a file that is none or lacks something."""

from pathlib import Path

import h5py
import pytest

import hand_written
from foreshard_analysis.errors import ExitCode, InputError
from foreshard_analysis.summary import load_summary
from foreshard_analysis.trace_file import Trace


def refusal(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        Trace(path)
    assert caught.value.code == ExitCode.BAD_INPUT
    assert str(path) in caught.value.what
    return caught.value


def test_says_what_it_is_a_trace_of(one_step: Path) -> None:
    with Trace(one_step) as trace:
        info = trace.info
    assert (info.kind, info.world_size, info.plan_hash, info.closed) == ("measured", 2, "00ff", True)
    assert info.tokens_per_step == 2 * 64


def test_enums_are_read_by_name_not_value(one_step: Path) -> None:
    with h5py.File(one_step, "a") as file:
        lanes = file["events/lane"][:]
        del file["events/lane"]
        own = {"reduce": 7, "compute": 3, "gather": 40}
        renumbered = {hand_written.LANES.index(name): value for name, value in own.items()}
        file["events"].create_dataset(
            "lane", data=[renumbered[lane] for lane in lanes], dtype=h5py.enum_dtype(own, basetype="u1")
        )
    with Trace(one_step) as trace:
        assert list(trace.table("events")["lane"]) == ["gather", "compute", "compute", "reduce", "compute"]


def test_a_newer_minor_version_is_read_and_a_newer_major_one_refused(tmp_path: Path) -> None:
    Trace(hand_written.one_step(tmp_path / "minor.h5", format_version="1.9")).close()
    newer = hand_written.one_step(tmp_path / "major.h5", format_version="2.0")
    assert '"2.0"' in refusal(newer).what
    assert "1.x" in refusal(newer).expected


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    text = tmp_path / "notes.h5"
    text.write_text("not a trace")
    assert "not an HDF5 file" in refusal(text).what
    other = tmp_path / "other.h5"
    h5py.File(other, "w").close()
    assert "format" in refusal(other).what
    assert "folder" in refusal(tmp_path).what
    assert "no such file" in refusal(tmp_path / "none.h5").what


def test_a_file_cut_short_is_refused(one_step: Path) -> None:
    one_step.write_bytes(one_step.read_bytes()[:1000])
    assert "cut short" in refusal(one_step).what


def test_a_missing_table_column_or_value_is_named(one_step: Path) -> None:
    with Trace(one_step) as trace:
        for ask, name in (
            (lambda: trace.table("plan/nothing"), "/plan/nothing"),
            (lambda: trace.table("steps", ["loss"]), "/steps/loss"),
            (lambda: trace.value("summary/mfu"), "/summary/mfu"),
            (lambda: trace.attribute("plan", "owner"), "owner"),
        ):
            with pytest.raises(InputError, match=name) as caught:
                ask()
            assert caught.value.code == ExitCode.BAD_INPUT


def test_columns_of_different_lengths_are_refused(one_step: Path) -> None:
    with h5py.File(one_step, "a") as file:
        del file["events/op"]
        file["events/op"] = [0, 1]
    with Trace(one_step) as trace, pytest.raises(InputError, match="damaged"):
        trace.table("events")


def test_a_damaged_column_is_named(one_step: Path) -> None:
    with h5py.File(one_step, "a") as file:
        del file["steps/start_ns"]
        steps = file["steps"].create_dataset("start_ns", data=[0], compression="gzip")
        chunk = steps.id.get_chunk_info(0)
    content = bytearray(one_step.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = b"?" * chunk.size
    one_step.write_bytes(content)
    with Trace(one_step) as trace, pytest.raises(InputError, match="/steps/start_ns cannot be read") as caught:
        trace.table("steps")
    assert caught.value.code == ExitCode.BAD_INPUT


def test_of_two_parts_the_sound_one_with_more_events_is_read(tmp_path: Path) -> None:
    whole = hand_written.events_of_step()
    steps = [hand_written.Step(0, hand_written.STEP_NS)]

    def parts(flushing: tuple[int, int], rows: tuple[int, int]) -> Path:
        for suffix, flag, count in zip((".part", ".part2"), flushing, rows, strict=True):
            path = tmp_path / f"t.h5{suffix}"
            hand_written.write_trace(path, whole[:count], steps, closed=False, flushing=flag)
        return tmp_path / "t.h5.part"

    for flushing, rows, expected in (
        ((0, 0), (5, 3), 5),
        ((0, 0), (3, 5), 5),
        ((1, 0), (5, 3), 3),
        ((0, 1), (4, 5), 4),
    ):
        with Trace(parts(flushing, rows)) as trace:
            assert len(trace.table("events")) == expected
    assert "within its flush" in refusal(parts((1, 1), (5, 5))).what


def test_the_name_of_an_unfinished_trace_leads_to_its_part(tmp_path: Path) -> None:
    hand_written.one_step(tmp_path / "t.h5.part")
    assert "t.h5.part" in refusal(tmp_path / "t.h5").remedy


def test_totals_of_an_unfinished_trace_are_missed(tmp_path: Path) -> None:
    steps = [hand_written.Step(0, hand_written.STEP_NS)]
    path = hand_written.write_trace(tmp_path / "t.h5", hand_written.events_of_step(), steps, closed=False)
    with Trace(path) as trace, pytest.raises(InputError, match="not closed"):
        load_summary(trace)
