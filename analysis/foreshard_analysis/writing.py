"""Files that appear whole or not at all."""

import os
import tempfile
from io import BytesIO, StringIO
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from foreshard_analysis.errors import usage

FORMATS = ("svg", "png", "pdf")
SVG = {"svg.fonttype": "none", "svg.hashsalt": "foreshard"}
"""Text stays text, and the same figure is the same file."""


def write_text(path: Path, text: str, force: bool) -> None:
    _write(path, text.encode(), force)


def write_figure(path: Path, figure: Figure, force: bool) -> None:
    """In the format that the suffix names."""
    kind = path.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise usage(f"{path}: no figure is written as `{path.suffix}`", ", ".join(f".{known}" for known in FORMATS))
    data = BytesIO()
    with matplotlib.rc_context(SVG):
        figure.savefig(data, format=kind, metadata=_undated(kind))
    _write(path, data.getvalue(), force)


def inline_svg(figure: Figure) -> str:
    """An <svg> element, to stand within HTML."""
    text = StringIO()
    with matplotlib.rc_context(SVG):
        figure.savefig(text, format="svg", metadata=_undated("svg"))
    return text.getvalue()[text.getvalue().index("<svg") :]


def _undated(kind: str) -> dict[str, None]:
    return {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})


def _write(path: Path, data: bytes, force: bool) -> None:
    if path.exists() and not force:
        raise usage(f"{path} exists", "a name that is free", "remove it, or add --force to overwrite it")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
