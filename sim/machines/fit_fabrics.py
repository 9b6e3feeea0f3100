#!/usr/bin/env python3
"""Fits what fabrics add to NCCL's own estimate, from published sweeps (tests/data/nccl_sweeps.csv).

    FORESHARD_SWEEP_ESTIMATES=estimates.csv build/default/bin/unit_network --gtest_filter='PublishedSweeps*'
    sim/machines/fit_fabrics.py estimates.csv [--leave-out]

measured = NCCL's + floor(fabric) + coefficient(fabric, collective)·sqrt(bytes) + overhead(measuring program), none
negative, by least squares of relative errors. Prints the constants (us, us/sqrt(byte)) for data/fabrics.csv. With
--leave-out, each sweep is predicted with constants from all others instead, and the median errors are printed.
"""
import csv
import math
import statistics
import sys

COLUMNS = ("sweep", "fabric", "collective", "program", "bytes", "us", "nccl")


def read(path):
    with open(path, newline="") as file:
        points = [dict(zip(COLUMNS, row)) for row in csv.reader(file)]
    # Few large messages, among racks of 72: no floor can be read off them.
    points = [point for point in points if not point["sweep"].startswith("nvl72")]
    for point in points:
        point.update({key: float(point[key]) for key in ("bytes", "us", "nccl")})
    return points


def terms(point):
    """The unknowns of a point, each with what it is multiplied by."""
    yield ("floor", point["fabric"]), 1.0
    yield ("sqrt", point["fabric"], point["collective"]), math.sqrt(point["bytes"])
    if point["program"] != "nccl-tests":
        yield ("overhead", point["program"]), 1.0


def fit(points):
    """Non-negative least squares by coordinate descent, each point weighted by 1/measured."""
    values = {name: 0.0 for point in points for name, _ in terms(point)}
    rows = {name: [] for name in values}
    residual = [1 - point["nccl"] / point["us"] for point in points]
    for i, point in enumerate(points):
        for name, factor in terms(point):
            rows[name].append((i, factor / point["us"]))
    for _ in range(3000):
        for name, row in rows.items():
            step = sum(residual[i] * x for i, x in row) / sum(x * x for _, x in row)
            step = max(step, -values[name])
            values[name] += step
            for i, x in row:
                residual[i] -= step * x
    return values


def predicted(point, values):
    return point["nccl"] + sum(values.get(name, 0.0) * factor for name, factor in terms(point))


def errors(points, values):
    """Median errors in per cent below 16 MiB and from there on."""
    parts = ([p for p in points if p["bytes"] < 2**24], [p for p in points if p["bytes"] >= 2**24])
    return [statistics.median([100 * abs(predicted(p, values) / p["us"] - 1) for p in part] or [0]) for part in parts]


def leave_out(points):
    for sweep in sorted({p["sweep"] for p in points}):
        values = fit([p for p in points if p["sweep"] != sweep])
        small, large = errors([p for p in points if p["sweep"] == sweep], values)
        print(f"{sweep:16} left out: median error {small:5.1f} % below 16 MiB, {large:5.1f} % from there on")


def main():
    points = read(sys.argv[1])
    if "--leave-out" in sys.argv:
        leave_out(points)
        return
    values = fit(points)
    for name, value in sorted(values.items()):
        print(*name, f"{value:.4g}", sep=",")
    print("median errors: {:.1f} % below 16 MiB, {:.1f} % from there on".format(*errors(points, values)))


main()
