#!/usr/bin/env python3
"""Fits the constants of sim/cost/gpu_{gemm,attention}.hpp to published tables of single kernels; no training run is used.

    python3 sim/profiles/fit_gpu_kernels.py        # rewrites sim/profiles/gpu_kernels.json, Python 3.9, no packages

The formulas are stated in the headers; this file repeats them for the fit alone, and tests/unit/sim/gpu_*_test.cpp measure
the errors of the C++ ones on the same tables.
"""
import csv
import json
import math
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parent.parent / "tests" / "data"
H100 = {"bf16": 989e12, "tf32": 494.5e12, "sms": 132, "hbm": 3350e9}
TILES = [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 256), (256, 64), (64, 32), (32, 64)]
SPLITS = [1, 2, 4, 8]
HBM_PART = 0.85
BACKWARD_PART = 0.825
MAX_SHAPES = "stas00/ml-engineering compute/accelerator/README.md, best-of-search shapes (MAMF); "


def rows(name):
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file))


def gemm_seconds(p, batch, m, n, k, peak, sms, hbm, size):
    best = math.inf
    for tm, tn in TILES:
        for split in SPLITS:
            if split > 1 and k < 256 * split:
                continue
            blocks = batch * math.ceil(m / tm) * math.ceil(n / tn) * split
            rate = p["rate"] * peak / sms * tm * tn / (tm * tn + p["tile_half_area"])
            time = math.ceil(blocks / sms) * 2 * tm * tn * (math.ceil(k / split) + p["fill_depth"]) / rate
            if split > 1:
                time += p["split_start_s"] + (split + 1) * 4 * batch * m * n / p["split_bytes_per_s"]
            best = min(best, time)
    moved = size * batch * (m * k + k * n + m * n)
    return p["start_s"] + max(best, moved / (HBM_PART * hbm))


def descend(loss, point, free, rounds=60):
    """Coordinate descent in logarithms, steps halved when none helps."""
    point, best, step = dict(point), loss(point), 0.4
    for _ in range(rounds):
        moved = False
        for name in free:
            for factor in (math.exp(step), math.exp(-step)):
                tried = dict(point, **{name: point[name] * factor})
                value = loss(tried)
                if value < best:
                    point, best, moved = tried, value, True
        if not moved:
            step /= 2
    return point, best


def gemm_loss(table, column, peak, size):
    def loss(p):
        errors = []
        for r in table:
            batch, m, n, k = (int(r[c]) for c in ("batch", "m", "n", "k"))
            measured = 2 * batch * m * n * k / (float(r[column]) * 1e12)
            predicted = gemm_seconds(p, batch, m, n, k, peak, H100["sms"], H100["hbm"], size)
            errors.append(abs(math.log(predicted / measured)))
        return sum(errors) / len(errors)

    return loss


def rate_of_best_shape(p, m, n, k, tflops, peak, sms, hbm, size=2):
    """The rate at which the model gives a best-of-search shape its published time."""
    wanted = 2 * m * n * k / (tflops * 1e12)
    low, high = 0.05, 1.5
    for _ in range(60):
        middle = (low + high) / 2
        slow = gemm_seconds(dict(p, rate=middle), 1, m, n, k, peak, sms, hbm, size) > wanted
        low, high = (middle, high) if slow else (low, middle)
    return low


def quantity(value, source):
    return {"value": float(f"{value:.4g}"), "source": source}


def gemm():
    table = rows("gemm_h100.csv")
    start = dict(start_s=5e-6, rate=0.9, tile_half_area=3000.0, fill_depth=100.0, split_start_s=2e-6, split_bytes_per_s=3e12)
    p, error = descend(gemm_loss(table, "bf16_TFLOPS", H100["bf16"], 2), start, list(start))
    tf32, tf32_error = descend(gemm_loss(table, "f32(tf32)_TFLOPS", H100["tf32"], 4), p, ["rate"])
    print(f"gemm bf16 {error:.3f} {p}\ngemm tf32 {tf32_error:.3f} rate {tf32['rate']:.3f}")
    source = f"fitted to {len(table)} bf16 GEMMs on H100 (tests/data/gemm_h100.csv: openxla/xla matmul_interpolator_data.h), mean error {100 * error:.1f} %"
    fitted = {name: quantity(p[name], source) for name in start if name != "rate"}

    def best(label, m, n, k, tflops, peak, sms, hbm, size=2):
        return quantity(rate_of_best_shape(p, m, n, k, tflops, peak * 1e12, sms, hbm * 1e9, size), MAX_SHAPES + label)

    fitted["rate"] = {
        "sm_90": quantity(p["rate"], source),
        "sm_80": best("A100 SXM 1024x10240x5120: 271.2 TFLOPS", 1024, 10240, 5120, 271.2, 312, 108, 2000),
        "sm_100": best("B200 1536x9472x14336: 1770.9 TFLOPS", 1536, 9472, 14336, 1770.9, 2250, 148, 8000),
        "gfx90a": best("MI250X GCD 1024x19968x14080: 147 TFLOPS", 1024, 19968, 14080, 147, 191.5, 110, 1640),
        "gfx942": best("MI300X 10240x15360x8192: 668.4 TFLOPS", 10240, 15360, 8192, 668.4, 1307, 304, 5300),
        "gfx950": best("MI355X 12288x8192x8192: 1565 TFLOPS", 12288, 8192, 8192, 1565, 2500, 256, 8000),
        "other": quantity(0.95, "assumed: as sm_80 and sm_90"),
    }
    fp8 = rate_of_best_shape(p, 1280, 4096, 12032, 1453.4, 1979e12, 132, 4800e9, 1) / p["rate"]
    fitted["type_part"] = {
        "f32": quantity(1.0, "assumed: as bf16, of the peak without tensor cores"),
        "tf32": quantity(tf32["rate"] / p["rate"], f"fitted to {len(table)} tf32 GEMMs on H100 (the same table), mean error {100 * tf32_error:.0f} %"),
        "fp8": quantity(fp8, MAX_SHAPES + "H200 fp8 1280x4096x12032: 1453.4 TFLOPS"),
    }
    fitted["sustained_part"] = {
        "sm_90": quantity(708.5 / 841.9, MAX_SHAPES + "H200 at 700 W: 708.5 sustained (MSMF) of 841.9 TFLOPS at best"),
        "sm_100": quantity(1456.3 / 1770.9, MAX_SHAPES + "B200 at 1000 W: 1456.3 sustained (MSMF) of 1770.9 TFLOPS at best"),
        "other": quantity(1.0, "assumed: not limited by power"),
    }
    fitted["training_part"] = quantity(0.87, "fitted: published training steps need 0.76 of peak on A100 and 0.65 on H100 (closed_form.json), 0.85 and 0.89 of what single products sustain; their mean")
    return fitted


def length_ramp(points):
    """Part of peak at infinite length, and the length at which half of it is reached: least squares of the relative error of
    1 / rate = a + b / length."""
    x = [(t, t / s) for s, t in points]
    aa, ab, bb = (sum(u[i] * u[j] for u in x) for i, j in ((0, 0), (0, 1), (1, 1)))
    ya, yb = sum(u[0] for u in x), sum(u[1] for u in x)
    det = aa * bb - ab * ab
    a, b = (ya * bb - yb * ab) / det, (yb * aa - ya * ab) / det
    return {"part": 1 / a / (H100["bf16"] / 1e12), "half": max(0.0, b / a)}


def attention():
    groups = {}
    for r in rows("flash_attention.csv"):
        if r["dtype"] == "fp16" and r["head_dim"].isdigit() and r["kernel"] != "standard PyTorch" and r["gpu"] == "H100-SXM5":
            key = (r["kernel"].lower(), int(r["head_dim"]), r["causal"] == "yes")
            groups.setdefault(key, []).append((int(r["seq_len"]), float(r["TFLOPS"])))
    source = "fitted to tests/data/flash_attention.csv (charts of arXiv 2407.08608, H100 fp16 forward)"
    fitted = []
    for (kernel, head, causal), points in sorted(groups.items()):
        p = length_ramp(points)
        fitted.append({"kernel": kernel, "arch": "sm_90", "head": head, "causal": causal, "half_length": round(p["half"]),
                       "part": quantity(p["part"], source)})
    forward = 3.5 / (1 + 2.5 / BACKWARD_PART)  # part of the whole in forward, if forward and backward together reach 1
    fa1, fa2 = (0.25 + 0.40) / 2 / forward, (0.50 + 0.73) / 2 / forward
    for kernel, part, why in (("fa1", fa1, "25 to 40 % of A100's peak, forward and backward; the middle"),
                              ("fa2", fa2, "50 to 73 % of A100's peak, forward and backward; the middle"),
                              ("triton", fa2 / 1.4, "FlashAttention-2 is 1.3 to 1.5 times as fast on A100; the middle")):
        for causal in (False, True):
            half = next(f["half_length"] for f in fitted if (f["kernel"], f["head"], f["causal"]) == ("fa2", 128, causal))
            fitted.append({"kernel": kernel, "arch": "sm_80", "head": 128, "causal": causal, "half_length": half,
                           "part": quantity(part, f"published: arXiv 2307.08691, {why}; half_length as FlashAttention-2 on H100")})
    for f in fitted:
        print(f["kernel"], f["arch"], f["head"], f["causal"], f["part"]["value"], f["half_length"])
    return fitted


def score_bytes(causal, rate):
    """Bytes per score that explain unfused attention: two products at the GEMM rate, the rest is traffic."""
    logs = []
    for r in rows("flash_attention.csv"):
        if r["kernel"] == "standard PyTorch" and r["causal"] == ("yes" if causal else "no") and int(r["seq_len"]) >= 4096:
            counted = 4 * 128 * (0.5 if causal else 1)
            per_score = counted / (float(r["TFLOPS"]) * 1e12) - 4 * 128 / (rate * H100["bf16"])
            logs.append(math.log(per_score * HBM_PART * H100["hbm"]))
    return math.exp(sum(logs) / len(logs))


def main():
    products = gemm()
    source = "fitted to tests/data/flash_attention.csv (standard PyTorch, H100, head 128, length 4096 and more)"
    profile = {
        "schema": 1,
        "gemm": products,
        "attention": attention(),
        "unfused_attention": {
            "bytes_per_score": quantity(score_bytes(False, 0.7), source),
            "bytes_per_score_causal": quantity(score_bytes(True, 0.7), source),
        },
        "attention_backward_part": quantity(BACKWARD_PART, "assumed: backward reaches 0.80 to 0.85 of the rate of forward"),
        "memory": {
            "hbm_part": quantity(HBM_PART, "published: fused kernels reach 85 to 91 % of DRAM bandwidth"),
            "compiled_traffic": quantity(0.3, "assumed: of eager operators on elements, what compiled ones move; in closed form 0.63 of fused operators' traffic against 2.0 to 2.4"),
            "l2_speedup": quantity(2.5, "assumed: operands that lie in L2 are read two to three times as fast"),
            "start_s": quantity(2e-6, "assumed: a queued kernel starts and ends in 2 to 4 us"),
            "hidden_start_s": quantity(3e-6, "assumed: of an isolated kernel's start, in a full queue"),
        },
        "host_issue_s": {
            "eager": quantity(10e-6, "published: 5 to 25 us of host time per eager operator (jiahuanglin.xyz, lesson 18)"),
            "compiled": quantity(4e-6, "assumed: back-end and launch alone, of the same source"),
            "graph": quantity(1e-6, "assumed: replay of a captured graph"),
            "collective": quantity(5e-5, "assumed: Python around a collective, checks of the process group, launch; traces show 30 to 100 us"),
        },
        "retry_s_per_gib": quantity(0.11, "fitted: figures 6c (T5-11B on 16 and 32 GPUs without the rate limiter) and 7b (GPT-175B on 128 GPUs, batch 2) of arXiv 2304.11277, one number for all three: what cudaFree holds up a job of several ranks, whose collectives wait for one another; a process alone needs about 0.5 ms"),
        "jitter_sigma": quantity(0.015, "assumed: 1 to 2 % between the ranks of a job; OSDI'25 (arXiv 2505.05713) has a 90th percentile of 1.06 over whole jobs"),
    }
    (HERE / "gpu_kernels.json").write_text(json.dumps(profile, indent=1) + "\n")


if __name__ == "__main__":
    main()
