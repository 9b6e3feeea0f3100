#!/usr/bin/env python3
"""Fits the constants of closed_form.json to published runs, all at once, by predicting those runs with foreshard-plan.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy
    /tmp/venv/bin/python sim/profiles/refit_closed_form.py [--bin build/default/bin] [--write] [--without SOURCE]

A constant moves by a factor of e^±1.2 at most, and no further than the bounds below: no part of a peak is more than 1. To move it by
a factor of e^0.3 costs as much as one row that is 3 % off, so that what few rows show stays where it was. Those of ASSUMED do not
move, since these runs hardly depend on them (networks, latencies) or cannot tell them apart from others. --without leaves a source's rows out of the fit and
prints how far off they are then. --write stores the result, with its source. About a minute.
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
TABLES = sorted((HERE.parent.parent / "tests/data/measurements").glob("*.csv"))
ASSUMED = {"memory", "outside_bytes", "communicator_bytes", "four_bit_bytes", "lora_part",
           "activations.eager", "loss_memory.eager", "jitter", "link_latency_s", "network_latency_s", "network", "products", "attention", "recomputed_part"}
UPPER = {"waves": 1.0, "contention": 0.4}
PARTS_OF_A_PEAK = ("products.", "attention.", "fp8")
SOURCE = "fitted to the runs of tests/data/measurements by refit_closed_form.py"


class Rows:
    """Relative errors of all rows that can be used, of throughput and then of memory, for given constants."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path):
        self.binary, self.folder = binary, folder
        _, self.sources = self.errors({})

    def errors(self, constants: dict[str, float]) -> tuple[np.ndarray, list[str]]:
        overrides = self.folder / "constants.json"
        overrides.write_text(json.dumps(constants))
        subprocess.run([self.binary, "validate", *TABLES, "--constants", overrides, "--out", self.folder / "out"], check=True,
                       stdout=subprocess.DEVNULL)
        errors, sources = [], []
        for column in ("error_pct", "memory_error_pct"):
            for table in TABLES:
                for row in csv.DictReader((self.folder / "out" / table.name).open()):
                    if row[column]:
                        errors.append(float(row[column]) / 100)
                        sources.append((column, row["source"]))
        return np.array(errors), sources


def is_assumed(name: str) -> bool:
    return name in ASSUMED or name.startswith("nic_gbit_per_gpu")


def most(name: str) -> float:
    return UPPER.get(name, 1.0 if name.startswith(PARTS_OF_A_PEAK) else np.inf)


def fit(rows: Rows, start: dict[str, float], used: np.ndarray) -> dict[str, float]:
    base, _ = rows.errors({})
    moving = [n for n in start if not is_assumed(n)
              and np.abs(rows.errors({n: 1.05 * start[n]})[0] - base)[used].max() > 1e-4]
    first = np.array([start[n] for n in moving])
    top = np.array([np.log(most(n) / start[n]) for n in moving])

    def constants(at: np.ndarray) -> dict[str, float]:  # factors e^(at - 1), so that steps are relative
        return dict(zip(moving, (first * np.exp(at - 1)).tolist()))

    def residuals(at: np.ndarray) -> np.ndarray:
        ratios = np.clip(np.log1p(np.clip(rows.errors(constants(at))[0][used], -0.95, None)), -1, 1)
        return np.concatenate([ratios, 0.03 * (at - 1) / 0.3])

    bounds = (np.full(len(moving), 1 - 1.2), 1 + np.clip(top, 1e-3, 1.2))
    found = least_squares(residuals, np.ones(len(moving)), bounds=bounds, loss="soft_l1", f_scale=0.03, diff_step=0.02, max_nfev=30)
    return constants(found.x)


def summary(errors: np.ndarray) -> str:
    size = 100 * np.abs(errors)
    return f"{len(errors)} rows, MAPE {size.mean():.2f} %, bias {100 * errors.mean():+.2f} %, p90 {np.percentile(size, 90):.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent.parent / "build/default/bin")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--without", default="")
    options = parser.parse_args()
    profile = json.loads(PROFILE.read_text())
    start = {name: constant["value"] for name, constant in profile.items()}
    with tempfile.TemporaryDirectory() as folder:
        rows = Rows(options.bin / "foreshard-plan", pathlib.Path(folder))
        used = np.array([source != options.without for _, source in rows.sources])
        memory = np.array([column == "memory_error_pct" for column, _ in rows.sources])
        fitted = fit(rows, start, used)
        errors, _ = rows.errors(fitted)
    for name, value in fitted.items():
        print(f"{name:32} {start[name]:10.4g} -> {value:10.4g}")
    print("fitted:  ", summary(errors[used & ~memory]), f"with {len(fitted)} constants")
    print("  memory:", summary(errors[used & memory]))
    if options.without:
        print("left out:", summary(errors[~used & ~memory]))
    if options.write:
        for name, value in fitted.items():
            profile[name] = {"value": float(f"{value:.4g}"), "source": SOURCE}
        PROFILE.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in profile.items()) + "\n}\n")


if __name__ == "__main__":
    main()
