#!/usr/bin/env python3
"""Fits the constants of closed_form.json to published runs, all at once, by predicting those runs with foreshard-plan.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy
    /tmp/venv/bin/python sim/profiles/refit_closed_form.py [--bin build/default/bin] [--write] [--without SOURCE|each]

Every fit starts from what each constant is assumed to be, for the reason that its "source" gives, never from an earlier fit. A
constant moves by a factor of e^±1.5 at most, and no further than the bounds below: no part of a peak is more than 1. To move it by a
factor of e^0.3 costs as much as one row that is 3 % off, so that what few rows show stays where it was. Those of FIXED do not
move, since these runs hardly depend on them (networks, latencies), cannot tell them apart from others, they are published, or counts.
--without leaves a source's rows out of the fit and prints how far off they are then ("each": of every source with at least three
rows, in turn): constants move there from the fit to all rows, by its slopes, and back to what is assumed where only that source
showed them; with --write it stores this. --write alone stores the constants, and the error bars of each class of runs; --error-bars
only these, with the constants as they are. About 200 predictions of all rows a fit.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

import numpy as np
from scipy.optimize import least_squares

HERE = pathlib.Path(__file__).parent
PROFILE = HERE / "closed_form.json"
ERROR_BARS = HERE / "error_bars.json"
LEFT_OUT = HERE / "left_out.json"
TABLES = sorted((HERE.parent.parent / "tests/data/measurements").glob("*.csv"))
FIXED = {"memory", "outside_bytes", "communicator_bytes", "four_bit_product_inputs", "cast_bytes.fused", "cast_bytes.tensorwise",
         "cast_bytes.rowwise", "activations.eager", "activations.eager.gated", "loss_memory.eager", "loss_memory.compiled", "link_latency_s",
         "network_latency_s", "network", "issue_s", "products_of_best", "products.rtx-4090", "products.rtx-5060-ti", "products.sm_80",
         "products.sm_90", "products.h100-sxm-96gb", "products.h100-pcie", "products.h100-nvl", "products.a100-pcie-80gb",
         "products.a100-pcie-40gb", "fp4", "attention.math", "attention.flash1", "attention.flash2.sm_90",
         "attention.flash3", "attention_heads_of_64", "attention_heads_of_64.flash1", "attention_heads_of_64.triton",
         "attention_backward", "loss.compiled", "loss.xla", "loss.xla_alone", "loss.hand_written", "host_s.hand_written",
         "update_bytes", "contention", "jitter"}
PARTS_OF_A_PEAK = ("products.", "attention.")
FITTED = "fitted to the runs of tests/data/measurements by refit_closed_form.py"


class Rows:
    """Relative errors of all rows that can be used, of throughput and then of memory, for given constants."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path):
        self.binary, self.folder, self.tables = binary, folder, TABLES
        _, self.rows = self.errors({})
        used = {source for _, source, _ in self.rows}
        self.tables = [t for t in TABLES if any(row["source"] in used for row in csv.DictReader(t.open()))]

    def errors(self, constants: dict[str, float]) -> tuple[np.ndarray, list[tuple[str, str, str]]]:
        overrides = self.folder / "constants.json"
        overrides.write_text(json.dumps(constants))
        subprocess.run([self.binary, "validate", *self.tables, "--constants", overrides, "--out", self.folder / "out"], check=True,
                       stdout=subprocess.DEVNULL)
        errors, rows, self.classes = [], [], []
        for column in ("error_pct", "memory_error_pct"):
            for table in self.tables:
                for row in csv.DictReader((self.folder / "out" / table.name).open()):
                    if row[column]:
                        errors.append(float(row[column]) / 100)
                        rows.append((column, row["source"], row["gpu"] + row["gpu_mem_gb"]))
                        self.classes.append((classes_of if column == "error_pct" else memory_class_of)(row))
        return np.array(errors), rows

    def changes(self, assumed: dict[str, float]) -> dict[str, np.ndarray]:
        """By constants that may move: of every row's error, where one is 5 % larger."""
        base, _ = self.errors(assumed)
        return {n: np.abs(self.errors(assumed | {n: 1.05 * assumed[n]})[0] - base) for n in assumed if not is_fixed(n)}


def classes_of(row: dict[str, str]) -> list[str]:
    """The classes of a run, the widest first, as error_bars.cpp looks for them: GPU and software, feed-forward layer, nodes."""
    gated = any(word in row["model"].lower() for word in ("llama", "mistral", "qwen"))
    widest = row["class"]
    narrower = f"{widest} {'gated' if gated else 'plain'}"
    return [widest, narrower, f"{narrower} {'over' if int(row['n_gpus']) > 8 else 'up to'} 8 GPUs"]


def memory_class_of(row: dict[str, str]) -> list[str]:
    words = " ".join(row[column] for column in ("notes", "precision", "strategy", "model")).lower()
    return ["lora" if "lora" in words else "full"]


def is_fixed(name: str) -> bool:
    return name in FIXED or name.startswith("nic_gbit_per_gpu")


def most(name: str) -> float:
    return 1.0 if name.startswith(PARTS_OF_A_PEAK) else np.inf


class Fit:
    """Constants x = ln(value / assumed), by least squares (soft above 3 %) over rows that are all linearised at one point."""

    def __init__(self, rows: Rows, assumed: dict[str, float]):
        self.rows, self.assumed = rows, assumed
        self.names = [n for n, change in rows.changes(assumed).items() if change.max() > 1e-4]
        top = np.array([np.log(most(n) / assumed[n]) for n in self.names])
        self.bounds = (np.full(len(top), -1.5), np.clip(top, 1e-3, 1.5))

    def constants(self, x: np.ndarray) -> dict[str, float]:
        return self.assumed | {n: self.assumed[n] * float(np.exp(at)) for n, at in zip(self.names, x)}

    def ratios(self, x: np.ndarray) -> np.ndarray:
        return np.clip(np.log1p(np.clip(self.rows.errors(self.constants(x))[0], -0.95, None)), -1, 1)

    def slopes(self, x: np.ndarray, ratios: np.ndarray) -> np.ndarray:
        return np.stack([(self.ratios(x + 0.01 * step) - ratios) / 0.01 for step in np.eye(len(x))], axis=1)

    def solve(self, x: np.ndarray, ratios: np.ndarray, slopes: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Where the line through `ratios` at x is best; a factor of e^0.3 weighs as much as a row that is 3 % off."""
        prior = 0.1 * np.eye(len(x))
        found = least_squares(lambda y: np.concatenate([(ratios + slopes @ (y - x))[used], 0.1 * y]), np.clip(x, *self.bounds),
                              jac=lambda y: np.concatenate([slopes[used], prior]), bounds=self.bounds, loss="soft_l1", f_scale=0.03)
        return found.x

    def all(self) -> dict[str, float]:
        """Fitted to all rows, from what is assumed; keeps the slopes there."""
        x = np.zeros(len(self.names))
        for _ in range(5):
            ratios = self.ratios(x)
            x, last = self.solve(x, ratios, self.slopes(x, ratios), np.ones(len(ratios), bool)), x
            if np.abs(x - last).max() < 0.01:
                break
        self.x, self.at = x, (x, self.ratios(x))
        self.slopes_there = self.slopes(*self.at)
        return {n: self.constants(x)[n] for n in self.names}

    def without(self, left: np.ndarray) -> dict[str, float]:
        """Without some rows, by the slopes of the fit to all: what only those rows showed goes back to what is assumed."""
        x, ratios = self.at
        for _ in range(3):
            x = self.solve(x, ratios, self.slopes_there, ~left)
            ratios = self.ratios(x)
        return self.constants(x)


def scaled(errors: np.ndarray, keys: list[str]) -> np.ndarray:
    """Errors after one scale for each key: a source and GPU."""
    ratios = 1 + errors
    for key in set(keys):
        rows = np.array([k == key for k in keys])
        ratios[rows] /= np.exp(np.median(np.log(ratios[rows])))
    return ratios - 1


def summary(errors: np.ndarray) -> str:
    size = 100 * np.abs(errors)
    return f"{len(errors)} rows, MAPE {size.mean():.2f} %, bias {100 * errors.mean():+.2f} %, p90 {np.percentile(size, 90):.1f} %"


def bars_of(errors: np.ndarray, classes: list[list[str]]) -> dict[str, dict[str, float]]:
    """Of each class with five rows, the size that nine of ten errors have at most, and 3 % at least: what repeats differ by."""
    sizes: dict[str, list[float]] = {}
    for error, names in zip(errors, classes):
        for name in names:
            sizes.setdefault(name, []).append(100 * abs(error))
    return {name: {"pct": float(np.ceil(10 * max(3.0, np.percentile(s, 90, method="higher"))) / 10), "rows": len(s)}
            for name, s in sorted(sizes.items()) if len(s) >= 5}


def write_error_bars(errors: np.ndarray, classes: list[list[str]], memory: np.ndarray) -> None:
    bars = json.loads(ERROR_BARS.read_text())
    bars["command"] = "sim/profiles/refit_closed_form.py --error-bars"
    for name, rows in (("measured", ~memory), ("memory", memory)):
        bars[name] = bars_of(errors[rows], [c for c, used in zip(classes, rows) if used])
    ERROR_BARS.write_text(json.dumps(bars, indent=1) + "\n")


def leave_out(rows: Rows, fit: Fit, source: str) -> dict[str, float] | None:
    left = np.array([s == source for _, s, _ in rows.rows])
    errors, _ = rows.errors(fit.without(left))
    timed = left & np.array([column == "error_pct" for column, _, _ in rows.rows])
    if not timed.any():
        return None
    keys = [s + g for (_, s, g), t in zip(rows.rows, timed) if t]
    size, after = 100 * np.abs(errors[timed]), 100 * np.abs(scaled(errors[timed], keys)).mean()
    print(f"without {source:34.34} {summary(errors[timed])}; with one scale a GPU {after:.2f} %", flush=True)
    found = {"mape_pct": size.mean(), "bias_pct": 100 * errors[timed].mean(), "p90_pct": np.percentile(size, 90), "scaled_mape_pct": after}
    return {"rows": len(size)} | {name: round(float(value), 2) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent.parent / "build/default/bin")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--error-bars", action="store_true")
    parser.add_argument("--without", default="")
    options = parser.parse_args()
    profile = json.loads(PROFILE.read_text())
    assumed = {name: constant["assumed"] for name, constant in profile.items()}
    with tempfile.TemporaryDirectory() as folder:
        rows = Rows(options.bin / "foreshard-plan", pathlib.Path(folder))
        if options.error_bars:
            timed = np.array([column == "error_pct" for column, _, _ in rows.rows])
            write_error_bars(rows.errors({})[0], rows.classes, ~timed)
            return
        fit = Fit(rows, assumed)
        fitted = fit.all()
        if options.without:
            sources = [s for _, s, _ in rows.rows]
            each = sorted({s for s in sources if sources.count(s) >= 3})
            found = {s: leave_out(rows, fit, s) for s in (each if options.without == "each" else [options.without])}
            if options.write:
                left_out = json.loads(LEFT_OUT.read_text()) | {s: f for s, f in found.items() if f}
                LEFT_OUT.write_text(json.dumps(left_out, indent=1, sort_keys=True) + "\n")
            return
        memory = np.array([column == "memory_error_pct" for column, _, _ in rows.rows])
        errors, _ = rows.errors(assumed | fitted)
    for name, value in fitted.items():
        print(f"{name:32} {assumed[name]:10.4g} -> {value:10.4g}")
    print("throughput:", summary(errors[~memory]), f"with {len(fitted)} constants (those of memory counted)")
    print("memory:    ", summary(errors[memory]))
    if options.write:
        write_error_bars(errors, rows.classes, memory)
        for name, constant in profile.items():
            constant["value"] = float(f"{fitted.get(name, assumed[name]):.4g}")
            constant["source"] = constant["source"].split("; " + FITTED)[0] + ("; " + FITTED if name in fitted else "")
        PROFILE.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in profile.items()) + "\n}\n")


if __name__ == "__main__":
    main()
