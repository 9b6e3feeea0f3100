#!/usr/bin/env python3
"""Writes the machine catalogue (gpus/, clusters/, fabrics/, gpu_names.json) from the tables in data/.

Every number becomes {"value", "source"}; those that a row lists as assumed ("*": all) say so. SI units: FLOP/s, bytes,
bytes/s, seconds, Hz, W. Run after a change of data/ and commit what it writes: sim/machines/make_catalogue.py
"""
import csv
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent

# column of gpus.csv -> (key, factor to SI)
GPU_COLUMNS = {
    "bf16_tflops": ("bf16_flops", 1e12),
    "fp16_tflops": ("fp16_flops", 1e12),
    "tf32_tflops": ("tf32_flops", 1e12),
    "fp32_tflops": ("fp32_flops", 1e12),
    "fp8_tflops": ("fp8_flops", 1e12),
    "hbm_gbps": ("memory_bytes_per_s", 1e9),
    "nvlinks": ("nvlinks", 1),
    "link_gbps": ("link_bytes_per_s", 1e9),
    "pcie_gen": ("pcie_generation", 1),
    "pcie_lanes": ("pcie_lanes", 1),
    "sms": ("multiprocessors", 1),
    "l2_mb": ("l2_bytes", 2**20),
    "clock_mhz": ("clock_hz", 1e6),
    "power_w": ("power_w", 1),
}
CLUSTER_COLUMNS = {
    "gpus_per_node": ("gpus_per_node", 1),
    "link_domain": ("link_domain", 1),
    "nics": ("nics", 1),
    "nic_gbps": ("nic_bytes_per_s", 1e9 / 8),
    "gpus": ("gpus", 1),
}
FABRIC_COLUMNS = {
    "floor_us": ("floor_s", 1e-6),
    "all_gather_us_per_sqrt_b": ("all_gather_s_per_sqrt_byte", 1e-6),
    "reduce_scatter_us_per_sqrt_b": ("reduce_scatter_s_per_sqrt_byte", 1e-6),
    "all_reduce_us_per_sqrt_b": ("all_reduce_s_per_sqrt_byte", 1e-6),
    "efficiency": ("efficiency", 1),
}


def rows(table):
    with open(HERE / "data" / table, newline="") as file:
        return list(csv.DictReader(file))


def number(text, factor=1):
    value = float(f"{float(text) * factor:.9g}")
    return int(value) if value == int(value) else value


def source_of(row, column):
    assumed = row.get("assumed", "").split()
    return ("assumed: " if "*" in assumed or column in assumed else "") + row["source"]


def quantities(row, columns):
    return {
        key: {"value": number(row[column], factor), "source": source_of(row, column)}
        for column, (key, factor) in columns.items()
    }


def memory(row):
    """What the driver reports; else the marketed size, of which drivers report about 1 % less."""
    if row["memory_mib"]:
        return {"value": int(row["memory_mib"]) * 2**20, "source": source_of(row, "memory_mib")}
    size = int(float(row["memory_gb"]) * 2**30 * 0.99)
    return {"value": size, "source": "assumed: 99 % of the marketed size; " + row["source"]}


def matmul(row):
    """The best matrix product found on the device; else four fifths of its peak."""
    if row["matmul_tflops"]:
        return {"value": number(row["matmul_tflops"], 1e12), "source": source_of(row, "matmul_tflops")}
    peak = float(row["bf16_tflops"]) or float(row["fp16_tflops"])
    return {"value": number(0.8 * peak, 1e12), "source": "assumed: 80 % of the peak, as A100 and H100 reach"}


def gpu(row):
    words = {"schema": 1, "name": row["name"], "architecture": row["arch"]}
    return words | quantities(row, GPU_COLUMNS) | {"memory_bytes": memory(row), "matmul_flops": matmul(row)}


def cluster(row):
    words = {key: row[key] for key in ("name", "gpu", "intra", "fabric", "cpu")}
    return {"schema": 1} | words | quantities(row, CLUSTER_COLUMNS)


def fabric(row):
    return {"schema": 1, "name": row["name"]} | quantities(row, FABRIC_COLUMNS)


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def main():
    for folder, table, make in (("gpus", "gpus.csv", gpu), ("clusters", "clusters.csv", cluster), ("fabrics", "fabrics.csv", fabric)):
        for row in rows(table):
            write(HERE / folder / f"{row['id']}.json", make(row))
    write(HERE / "gpu_names.json", {row["printed"]: row["gpu"] for row in rows("gpu_names.csv")})


main()
