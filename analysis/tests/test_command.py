"""The command line: what it writes, what it says, and its exit codes."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from foreshard_analysis.command import run
from foreshard_analysis.paper import FIGURES
from hand_written import STEP_NS, Step, events_of_step, one_step, without_buffers, write_trace

VOID = {"meta", "br", "path", "use", "rect", "link"}


class Elements(HTMLParser):
    """Counts elements, and checks that each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        assert not [value for name, value in attributes if name == "src"], "a report needs nothing beside it"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["timeline", "memory"])
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_figures_of_a_trace_are_written(name: str, suffix: str, one_step: Path, tmp_path: Path) -> None:
    out = tmp_path / f"new/f.{suffix}"
    assert run([name, str(one_step), "--out", str(out)]) == 0
    assert out.read_bytes()[:4] in (b"<?xm", b"\x89PNG", b"%PDF")
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_a_file_that_exists_is_kept_unless_forced(one_step: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "f.svg"
    out.write_text("mine")
    assert run(["timeline", str(one_step), "--out", str(out)]) == 2
    assert out.read_text() == "mine" and "--force" in capsys.readouterr().err
    assert run(["timeline", str(one_step), "--out", str(out), "--force"]) == 0
    assert out.read_text() != "mine"


@pytest.mark.parametrize("name", ["report", "timeline", "memory", "scaling"])
def test_a_trace_is_never_overwritten_by_what_is_made_of_it(name: str, one_step: Path, tmp_path: Path, capsys) -> None:
    before = one_step.read_bytes()
    other_name = tmp_path / "link.svg"
    other_name.symlink_to(one_step)
    assert run([name, str(one_step), "--out", str(other_name), "--force"]) == 2
    assert one_step.read_bytes() == before and "would be overwritten" in capsys.readouterr().err


def test_an_unknown_kind_of_figure_is_refused(one_step: Path, tmp_path: Path) -> None:
    assert run(["memory", str(one_step), "--out", str(tmp_path / "f.bmp")]) == 2
    assert not (tmp_path / "f.bmp").exists()


def test_compare_prints_the_parts(tmp_path: Path, capsys) -> None:
    slow = write_trace(tmp_path / "m.h5", events_of_step(stretch=2), [Step(0, 2 * STEP_NS)])
    fast = one_step(tmp_path / "p.h5", kind="predicted")
    assert run(["compare", str(fast), str(slow), "--out", str(tmp_path / "c.svg")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["forward", "0.000", "ms", "0.000", "ms", "-50.0", "%"]
    assert run(["compare", str(fast), str(fast)]) == 2


def test_scaling_prints_a_line_for_each_run(tmp_path: Path, capsys) -> None:
    paths = [str(one_step(tmp_path / f"{ranks}.h5", world_size=ranks)) for ranks in (1, 4)]
    assert run(["scaling", *paths, "--out", str(tmp_path / "s.svg")]) == 0
    assert "100.0 %" in capsys.readouterr().out.splitlines()[2]


def test_the_report_is_one_well_formed_file(one_step: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert run(["report", str(one_step), "--out", str(out)]) == 0
    text = out.read_text()
    elements = Elements(text)
    assert not elements.open and elements.count["svg"] == 2
    assert "a &lt; b" in text and "10.25 KiB" in text and "28.6 %" in text  # exposed: 300 of 1050 ns


def test_a_trace_without_buffers_has_a_report_but_no_memory(one_step: Path, tmp_path: Path, capsys) -> None:
    path = without_buffers(one_step)
    assert run(["report", str(path), "--out", str(tmp_path / "r.html")]) == 0
    assert Elements((tmp_path / "r.html").read_text()).count["svg"] == 1
    assert run(["memory", str(path), "--out", str(tmp_path / "m.svg")]) == 5
    assert "no buffers" in capsys.readouterr().err


def test_the_report_shows_the_loss_of_the_run_beside_it(one_step: Path, tmp_path: Path) -> None:
    rows = '{"schema": "foreshard-metrics", "version": 1}\n{"step": 1, "loss": 5.0}\n{"step": 2, "loss": 4.0}\n'
    (one_step.parent / "metrics.jsonl").write_text(rows)
    assert run(["report", str(one_step), "--out", str(tmp_path / "r.html")]) == 0
    assert Elements((tmp_path / "r.html").read_text()).count["svg"] == 3


def test_the_report_lays_a_prediction_beside_the_run(one_step: Path, tmp_path: Path) -> None:
    slow = write_trace(tmp_path / "p.h5", events_of_step(stretch=3), [Step(0, 3 * STEP_NS)], kind="predicted")
    out = tmp_path / "r.html"
    assert run(["report", str(one_step), "--beside", str(slow), "--out", str(out)]) == 0
    assert Elements(out.read_text()).count["svg"] == 3 and "+200.0 %" in out.read_text()
    assert run(["report", str(one_step), "--beside", str(one_step), "--out", str(tmp_path / "no.html")]) == 2
    assert not (tmp_path / "no.html").exists()


def test_an_unfinished_trace_has_a_report(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.h5.part", events_of_step(), [Step(0, STEP_NS)], closed=False)
    assert run(["report", str(path), "--out", str(tmp_path / "r.html")]) == 0
    assert "not closed" in (tmp_path / "r.html").read_text()


def test_the_paper_has_ten_figures(tmp_path: Path, capsys) -> None:
    assert run(["paper", "--out", str(tmp_path / "figures")]) == 0
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        f"figure-{spec.key}.svg" for spec in sorted(FIGURES, key=lambda spec: spec.key)
    ]
    assert len(capsys.readouterr().out.splitlines()) == 11


@pytest.mark.parametrize(
    ("arguments", "code", "seen"),
    [
        (["timeline", "none.h5"], 5, "none.h5: there is no such file"),
        (["report", __file__], 5, "not an HDF5 file"),
        (["scaling", "none.h5"], 5, "check the name"),
        (["predict-paper", "--plan", "/no/such/plan", "--out", "x.csv"], 1, "/no/such/plan"),
    ],
)
def test_what_is_wrong_is_said_with_its_exit_code(arguments: list[str], code: int, seen: str, capsys) -> None:
    assert run(arguments) == code
    text = capsys.readouterr().err
    assert text.startswith("foreshard-analysis: error: ") and seen in text and f"exit code {code}" in text
    assert "Traceback" not in text


def test_usage_has_exit_code_2() -> None:
    for arguments in ([], ["draw"], ["timeline"], ["paper"]):
        with pytest.raises(SystemExit) as caught:
            run(arguments)
        assert caught.value.code == 2


def test_an_output_that_nobody_reads_is_no_error_to_print(one_step: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "foreshard_analysis", "scaling", one_step, "--out", tmp_path / "s.svg"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_a_missing_package_is_named() -> None:
    code = "import sys; sys.modules['pandas'] = None; from foreshard_analysis.__main__ import main; sys.exit(main())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "no module `pandas`" in result.stderr and "python3-pandas" in result.stderr
