#!/usr/bin/env python3
"""One table of what a GPU did: table.py FOLDER

Reads what tests/gpu/run.sh left in FOLDER (bench.json of gpu_bench, peer.json of peer.py, predicted_MODEL.json of
foreshard-plan) and prints it beside the goals. What is missing is said to be not measured. The exit code is 0 whether goals
are met or not: they are goals, not tests.
"""
import json
import pathlib
import sys

GOALS = {"mfu": 0.50, "memory": 0.85, "attention": 0.60, "host": 0.02, "prediction": 0.07}


def milliseconds(seconds):
    return "-" if seconds is None else f"{1e3 * seconds:.2f} ms"


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def gib(size_bytes):
    return "-" if size_bytes is None else f"{size_bytes / 2**30:.3f} GiB"


def verdict(met):
    return "" if met is None else "met" if met else "MISSED"


def columns(rows):
    """Rows of equal length as lines, the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in rows]


def heading(bench, peer):
    device = bench.get("device")
    lines = [f"{device['name']}, {device['multiprocessors']} SMs, {gib(device['memory_bytes'])}; CUDA runtime {device['runtime']}, driver {device['driver']}"
             if device else "device: not measured"]
    if "torch" in peer:
        lines.append(f"PyTorch {peer['torch']}, cuDNN {peer.get('cudnn')}")
    return lines


def rates(bench, peer):
    ours, theirs = bench.get("reference"), peer.get("rates", {})
    if not ours:
        return ["reference rates: not measured"]
    rows = [["reference", "foreshard", "PyTorch"]]
    for name, key, unit in (("copy, read and written", "copy_bytes_per_s", ("GB/s", 1e9)), ("bf16 product of 8192^3", "matmul_flops_per_s", ("TFLOP/s", 1e12))):
        rows.append([name, f"{ours[key] / unit[1]:.0f} {unit[0]}", f"{theirs[key] / unit[1]:.0f} {unit[0]}" if key in theirs else "-"])
    return columns(rows)


def peer_step(peer, model, way):
    return next((s["step_s"] for s in peer.get("steps", []) if s["model"] == model and s["way"] == way), None)


def steps(bench, peer, predicted):
    rows = [["training step", "rows", "step", "MFU", "tokens/s", "goal", ""]]
    rate = bench.get("reference", {}).get("matmul_flops_per_s")
    for s in bench.get("steps", []):
        mfu = lambda seconds: s["flops"] / seconds / rate if seconds and rate else None
        row = lambda who, seconds, goal="", met=None: rows.append(
            [f"{s['model']}, {who}", str(s["rows"]), milliseconds(seconds), percent(mfu(seconds)),
             f"{s['rows'] * s['seq'] / seconds:.0f}" if seconds else "-", goal, verdict(met)])
        eager, compiled = (peer_step(peer, s["model"], way) for way in ("eager", "compiled"))
        row("foreshard", s["step_s"], f"MFU >= {percent(GOALS['mfu'])}", mfu(s["step_s"]) >= GOALS["mfu"] if rate else None)
        if "by_op" in s:
            row("foreshard, op by op", s["by_op"]["step_s"])
        row("FSDP2 eager", eager)
        row("FSDP2 compiled", compiled, "slower than foreshard", compiled > s["step_s"] if compiled else None)
        forecast = predicted.get(s["model"], {}).get("step_time_s")
        error = forecast / s["step_s"] - 1 if forecast else None
        row("predicted", forecast, f"within {percent(GOALS['prediction'])}" + (f": {100 * error:+.1f} %" if forecast else ""),
            abs(error) <= GOALS["prediction"] if forecast else None)
    return columns(rows) if len(rows) > 1 else ["training steps: not measured"]


def hosts(bench):
    rows = [["host time of a step", "graphs", "share", "op by op", "share", "goal", ""]]
    for s in bench.get("steps", []):
        by_op, share = s.get("by_op", {}), s["host_s"] / s["step_s"]
        rows.append([s["model"], milliseconds(s["host_s"]), percent(share), milliseconds(by_op.get("host_s")),
                     percent(by_op["host_s"] / by_op["step_s"]) if by_op else "-", f"< {percent(GOALS['host'])}", verdict(share < GOALS["host"])])
    return columns(rows) if len(rows) > 1 else []


def memory(bench, peer, predicted):
    rows = [["memory", "plan", "arena", "high water", "predicted", "engine, cudaMemGetInfo", "in use at the end", "FSDP2 reserved", "arena exact"]]
    for s in bench.get("steps", []):
        forecast = predicted.get(s["model"], {}).get("arena_bytes")
        reserved = next((p["peak_reserved_bytes"] for p in peer.get("steps", []) if p["model"] == s["model"] and p["way"] == "eager"), None)
        exact = s["arena_bytes"] >= s["plan_arena_bytes"] == s["high_water_bytes"] and forecast in (None, s["plan_arena_bytes"])
        rows.append([s["model"], str(s["plan_arena_bytes"]), str(s["arena_bytes"]), str(s["high_water_bytes"]), "-" if forecast is None else str(forecast),
                     gib(s["engine_bytes"]), gib(s["used_bytes"]), gib(reserved), verdict(exact)])
    return columns(rows) if len(rows) > 1 else []


def kernels(bench):
    copy = bench.get("reference", {}).get("copy_bytes_per_s")
    rows = [["bound by memory", "MB", "time", "GB/s", "of copy", "goal", ""]]
    for k in bench.get("kernels", []):
        rate = k["bytes"] / k["median_s"]
        share = rate / copy if copy else None
        rows.append([k["name"], f"{k['bytes'] / 1e6:.0f}", milliseconds(k["median_s"]), f"{rate / 1e9:.0f}", percent(share),
                     f">= {percent(GOALS['memory'])}", verdict(share >= GOALS["memory"] if copy else None)])
    return columns(rows) if len(rows) > 1 else ["kernels: not measured"]


def attention(bench, peer):
    rows = [["attention", "batch x seq x heads x width", "TFLOP/s", "cuDNN", "flash", "of cuDNN", "goal", ""]]
    for a in bench.get("attention", []):
        shape = [a[key] for key in ("batch", "seq", "heads", "width")]
        direction = "backward_s" if a["name"].endswith("backward") else "forward_s"
        theirs = {p["backend"]: p.get(direction) for p in peer.get("attention", []) if [p[key] for key in ("batch", "seq", "heads", "width")] == shape}
        rate = lambda seconds: "-" if not seconds else f"{a['flops'] / seconds / 1e12:.0f}"
        cudnn = theirs.get("cudnn")
        share = cudnn / a["median_s"] if cudnn else None
        rows.append([a["name"], "x".join(map(str, shape)), rate(a["median_s"]), rate(cudnn), rate(theirs.get("flash")), percent(share),
                     f">= {percent(GOALS['attention'])}", verdict(share >= GOALS["attention"] if share else None)])
    return columns(rows) if len(rows) > 1 else ["attention: not measured"]


def failures(bench, peer):
    return [f"FAILED {who} {part}: {reason.splitlines()[0]}" for who, found in (("gpu_bench", bench), ("peer.py", peer)) for part, reason in found.get("failed", {}).items()]


def table(bench, peer, predicted):
    parts = [heading(bench, peer), rates(bench, peer), steps(bench, peer, predicted), hosts(bench), memory(bench, peer, predicted), kernels(bench),
             attention(bench, peer), failures(bench, peer)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    predicted = {path.stem.removeprefix("predicted_"): read(path) for path in folder.glob("predicted_*.json")}
    print(table(read(folder / "bench.json"), read(folder / "peer.json"), predicted), end="")


if __name__ == "__main__":
    main()
