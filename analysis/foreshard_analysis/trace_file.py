"""A trace as a file: which file to trust, whether it is a trace at all, and its tables as they stand in it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
import pandas as pd

from foreshard_analysis.errors import bad_file

FORMAT = "foreshard-trace"
MAJOR_VERSION = 1
A_TRACE = "a trace that foreshard-train or foreshard-plan wrote"


@dataclass(frozen=True)
class TraceInfo:
    """What a trace says of itself, and of the plan that was carried out."""

    path: Path
    kind: str
    """`measured` or `predicted`."""
    run_id: str
    world_size: int
    plan_hash: str
    clock: str
    date: str
    software: str
    command_line: str
    config: dict[str, Any]
    closed: bool
    parameters: int
    micro_batches: int
    micro_batch_tokens: int
    """Of one rank."""
    arena_bytes: int

    @property
    def tokens_per_step(self) -> int:
        """Of all ranks."""
        return self.world_size * self.micro_batches * self.micro_batch_tokens

    @property
    def predicted(self) -> bool:
        return self.kind == "predicted"


class Trace:
    """An open trace. Raises InputError if it is not one, has a newer major version, or lacks what it is asked for."""

    def __init__(self, path: str | Path) -> None:
        self.path, self._file = _open_sound(Path(path))
        try:
            _expect_trace(self.path, self._file)
            self.info = self._read_info()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def has(self, name: str) -> bool:
        return name in self._file

    def table(self, name: str, columns: Sequence[str] = (), rows: Sequence[slice] = ()) -> pd.DataFrame:
        """Group `name` (e.g. "plan/ops") with enums as categories and text decoded; all columns unless named, of all
        rows unless given as slices."""
        group = self._group(name)
        names = list(columns) or list(group)
        data = {column: self._column(name, column, rows) for column in names}
        lengths = {column: len(values) for column, values in data.items()}
        if len(set(lengths.values())) > 1:
            raise bad_file(self.path, f"columns of /{name} have {lengths} rows", "equally many; the file is damaged")
        return pd.DataFrame(data)

    def value(self, name: str) -> Any:
        """A single number, e.g. "summary/step_time_s"."""
        return self._dataset(name)[()].item()

    def attribute(self, group: str, name: str) -> Any:
        attributes = self._group(group).attrs
        if name not in attributes:
            raise bad_file(self.path, f"/{group} has no attribute `{name}`, only {sorted(attributes)}", A_TRACE)
        return _plain(attributes[name])

    def _group(self, name: str) -> h5py.Group:
        group = self._file.get(name)
        if not isinstance(group, h5py.Group):
            raise bad_file(self.path, f"has no table /{name}, only {sorted(self._file)}", A_TRACE)
        return group

    def _dataset(self, name: str) -> h5py.Dataset:
        dataset = self._file.get(name)
        if not isinstance(dataset, h5py.Dataset):
            parent = name.rpartition("/")[0]
            raise bad_file(self.path, f"has no /{name}, only {sorted(self._group(parent))} in /{parent}", A_TRACE)
        return dataset

    def _column(self, table: str, column: str, rows: Sequence[slice]) -> pd.Series:
        dataset = self._dataset(f"{table}/{column}")
        try:
            values = np.concatenate([dataset[part] for part in rows or [slice(None)]])
        except OSError as error:
            raise bad_file(self.path, f"/{table}/{column} cannot be read ({error})", "a file that is whole") from error
        return _decoded(dataset, values)

    def _read_info(self) -> TraceInfo:
        def text(name: str) -> str:
            return str(self.attribute("/", name))

        def of_plan(name: str) -> int:
            return int(self.attribute("plan", name))

        return TraceInfo(
            path=self.path,
            kind=text("kind"),
            run_id=text("run_id"),
            world_size=int(self.attribute("/", "world_size")),
            plan_hash=text("plan_hash"),
            clock=text("clock"),
            date=text("date"),
            software=f"{text('software')} {text('softwareVersion')}",
            command_line=text("command_line"),
            config=_config(self.path, text("config")),
            closed="closed" in self._file.attrs,
            parameters=of_plan("parameters"),
            micro_batches=of_plan("micro_batches"),
            micro_batch_tokens=of_plan("micro_batch_tokens"),
            arena_bytes=of_plan("arena_bytes"),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def _config(path: Path, text: str) -> dict[str, Any]:
    try:
        return json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        raise bad_file(path, f"its attribute `config` is not JSON: {error}", A_TRACE) from error


def _decoded(dataset: h5py.Dataset, values: np.ndarray) -> pd.Series:
    names = h5py.check_enum_dtype(dataset.dtype)
    if names and dataset.dtype != bool:
        ordered = sorted(names, key=names.get)
        codes = np.searchsorted([names[name] for name in ordered], values)
        return pd.Series(pd.Categorical.from_codes(codes, ordered))
    if values.dtype.kind in "SO":
        return pd.Series([text.decode() if isinstance(text, bytes) else text for text in values], dtype=object)
    return pd.Series(values)


def _open_sound(path: Path) -> tuple[Path, h5py.File]:
    """The file to read: of the two that an unfinished trace consists of, the one that holds more and was not being
    written when its writer was killed."""
    candidates = _parts(path)
    opened = [(candidate, _open(candidate)) for candidate in candidates]
    sound = [(candidate, file) for candidate, file in opened if not file.attrs.get("flushing", 0)]
    best = max(sound, key=lambda pair: _rows(pair[1]), default=None)
    for _, file in opened:
        if best is None or file is not best[1]:
            file.close()
    if best is None:
        seen = " and ".join(str(candidate) for candidate in candidates)
        raise bad_file(path, f"the writer was killed within its flush ({seen})", "the other part, or a whole trace")
    return best


def _parts(path: Path) -> list[Path]:
    if path.suffix not in (".part", ".part2"):
        return [_existing(path)]
    both = [path.with_suffix(suffix) for suffix in (".part", ".part2")]
    return [part for part in both if part.exists()] or [_existing(path)]


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise bad_file(path, "is a folder", "a trace, usually trace.h5 in it")
    if path.is_file():
        return path
    part = path.with_name(path.name + ".part")
    remedy = f"the run goes on or was killed: try {part}" if part.exists() else "check the name"
    raise bad_file(path, "there is no such file", A_TRACE, remedy)


def _open(path: Path) -> h5py.File:
    try:
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        raise bad_file(path, f"not an HDF5 file, or cut short ({error})", A_TRACE) from error


def _rows(file: h5py.File) -> int:
    events = file.get("events/op")
    return len(events) if isinstance(events, h5py.Dataset) else 0


def _expect_trace(path: Path, file: h5py.File) -> None:
    seen = _plain(file.attrs.get("format", ""))
    if seen != FORMAT:
        raise bad_file(path, f'an HDF5 file whose attribute `format` is "{seen}"', f'"{FORMAT}": {A_TRACE}')
    version = str(_plain(file.attrs.get("format_version", "")))
    major = version.partition(".")[0]
    if major != str(MAJOR_VERSION):
        raise bad_file(
            path,
            f'a trace of format version "{version}"',
            f"{MAJOR_VERSION}.x, which this package reads",
            "read it with the package that came with the program that wrote it",
        )
