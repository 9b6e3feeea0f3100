#!/usr/bin/env python3
"""Predicts published runs of PyTorch FSDP event by event, and stores how far off each class of them is: torch_error_bars.json.

    sim/profiles/measure_torch_error_bars.py [--bin build/default/bin] [--out errors.csv]

No constant of sim/runtimes was fitted to these runs. Taken are rows of tests/data/measurements whose model is of Llama's or GPT's
family, whose blocks are all recomputed or none, and whose GPU and network are in the catalogue. MosaicML's own GPT and MPT are
predicted as Hugging Face's GPT-2 of the same shape, with the attention kernel that the row names.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
TABLES = sorted((HERE.parent.parent / "tests/data/measurements").glob("*.csv"))
ERROR_BARS = HERE / "torch_error_bars.json"
CLUSTERS = HERE.parent / "machines/clusters"
ALONE = {"a100-sxm-40gb": "8x-a100-40gb", "a100-sxm-80gb": "8x-a100-80gb", "h100-sxm": "8x-h100", "h100-sxm-96gb": "8x-h100-96gb"}
MOSAIC = {"a100-sxm-40gb": "mosaicml-a100-40gb", "a100-sxm-80gb": "mosaicml-a100-80gb", "h100-sxm": "mosaicml-h100"}


def is_gated(row: dict[str, str]) -> bool:
    return any(word in row["model"].lower() for word in ("llama", "mistral", "qwen"))


def is_mosaic(row: dict[str, str]) -> bool:
    return row["source"].startswith(("mosaicml", "llm-foundry"))


def cluster_of(row: dict[str, str], gpu: str, folder: pathlib.Path) -> str | None:
    """Of the catalogue, with the bandwidth that the row prints for a node's network."""
    if int(row["n_gpus"]) <= 8:
        return ALONE.get(gpu)
    name = MOSAIC.get(gpu)
    printed = re.match(r"(\d+) Gbps", row["interconnect"])
    if not name or is_mosaic(row) or not printed:
        return name
    cluster = json.loads((CLUSTERS / f"{name}.json").read_text())
    cluster["nic_bytes_per_s"]["value"] = float(printed[1]) * 1e9 / 8 / cluster["nics"]["value"]
    path = folder / f"{name}-{printed[1]}.json"
    path.write_text(json.dumps(cluster))
    return str(path)


def shape_of(row: dict[str, str]) -> list[str]:
    shape = {"layers": row["layers"], "width": row["d_model"], "heads": row["heads"], "ffn_width": row["d_ff"], "vocab_size": row["vocab"]}
    if is_gated(row):
        shape |= {"preset": "llama2-7b", "kv_heads": row["kv_heads"] or row["heads"], "tied_head": "false"}
    else:
        shape |= {"preset": "gpt2", "tied_head": "true"}
    shape["max_seq_len"] = row["seq_len"]
    return [f"--model.{key}={value}" for key, value in shape.items() if value]


def software_of(row: dict[str, str], gpu: str) -> list[str]:
    """Composer prefetches behind a block's backward; its GPUs of 2022 and 2023 ran PyTorch 1.13 and 2.0."""
    words = row["compile_or_flash"].lower()
    kernel = "triton" if "triton" in words else "fa1" if "1.13" in words else "fa3" if "v3" in words else "fa2"
    flags = [f"--torch.attention={kernel}", f"--torch.compile={'true' if row['class'].endswith('compiled') else 'false'}"]
    if "fsdp2" in row["strategy"].lower():
        return flags + ["--runtime.profile=pytorch-fsdp2", "--precision.reduce=fp32"]
    flags += ["--runtime.profile=pytorch-fsdp1", "--precision.reduce=bf16"]
    return flags + ["--parallel.prefetch=post", "--torch.release=1.13"] if is_mosaic(row) else flags


def command_of(row: dict[str, str], folder: pathlib.Path) -> list[str] | None:
    gpu = row["class"].rpartition(" ")[0]
    cluster = cluster_of(row, gpu, folder)
    recomputed = row["activation_ckpt"].split(" ")[0]
    usable = "fsdp" in row["strategy"].lower() and recomputed in ("none", "full") and row["layers"] and row["heads"] and row["vocab"]
    typed = row["precision"].startswith(("bf16", "amp_bf16", "mixed")) and "true" not in row["precision"] and "float8" not in row["precision"]
    if not cluster or not usable or not typed or row["class"].rpartition(" ")[2] not in ("eager", "compiled"):
        return None
    gpus = int(row["n_gpus"])
    sharded = ["hybrid_shard", "--parallel.shard_degree=8"] if "HSDP" in row["strategy"] and "choice" not in row["strategy"] else ["full_shard"]
    batch = int(float(row["micro_batch_per_gpu"] or 1))
    steps = int(float(row["grad_accum"] or 1))
    return [*shape_of(row), *software_of(row, gpu), f"--machine.cluster={cluster}", f"--parallel.world_size={gpus}",
            f"--parallel.strategy={sharded[0]}", *sharded[1:], "--precision.param=bf16", f"--train.seq_len={row['seq_len']}",
            f"--train.local_batch_size={batch}", f"--train.global_batch_size={batch * min(steps, 4) * gpus}",
            f"--activation_checkpoint.mode={recomputed}"]


def classes_of(row: dict[str, str]) -> list[str]:
    narrower = f"{row['class']} {'gated' if is_gated(row) else 'plain'}"
    return [row["class"], narrower, f"{narrower} {'over' if int(row['n_gpus']) > 8 else 'up to'} 8 GPUs"]


def bar(errors: list[float]) -> dict[str, float]:
    """The size that nine of ten errors have at most."""
    sizes = sorted(abs(e) for e in errors)
    return {"pct": round(max(3.0, sizes[-(-9 * len(sizes) // 10) - 1]), 1), "rows": len(sizes)}


def read_rows(plan: pathlib.Path, folder: pathlib.Path) -> list[dict[str, str]]:
    subprocess.run([plan, "validate", *TABLES, "--out", folder], check=True, stdout=subprocess.DEVNULL)
    rows = [row for table in TABLES for row in csv.DictReader((folder / table.name).open())]
    return [row for row in rows if row["error_pct"]]


def error_of(plan: pathlib.Path, row: dict[str, str], command: list[str]) -> float | None:
    """Percent of what was measured; None for a run that is said not to fit."""
    result = subprocess.run([plan, *command, "--json"], capture_output=True, text=True, check=False)
    if result.returncode == 3:
        return None
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {result.stderr}")
    measured = float(row["predicted_tokens_per_s_per_gpu"]) / (1 + float(row["error_pct"]) / 100)
    return 100 * (json.loads(result.stdout)["tokens_per_s_per_device"] / measured - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent.parent / "build/default/bin")
    parser.add_argument("--out", type=pathlib.Path, help="write each run's error and command into this CSV file")
    options = parser.parse_args()
    plan = options.bin / "foreshard-plan"
    errors: dict[str, list[float]] = {}
    lines, too_large = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for row in read_rows(plan, folder):
            command = command_of(row, folder)
            error = error_of(plan, row, command) if command else None
            too_large += command is not None and error is None
            if error is None:
                continue
            for key in classes_of(row):
                errors.setdefault(key, []).append(error)
            lines.append([row["source"], row["model"], row["class"], row["n_gpus"], f"{error:.2f}", " ".join(command)])
    measured = {key: bar(values) for key, values in sorted(errors.items()) if len(values) >= 5}
    ERROR_BARS.write_text(json.dumps({"command": "sim/profiles/measure_torch_error_bars.py", "measured": measured}, indent=1) + "\n")
    if options.out:
        csv.writer(options.out.open("w")).writerows([["source", "model", "class", "n_gpus", "error_pct", "command"], *lines])
    every = [e for line in lines for e in [float(line[4])]]
    print(f"{len(every)} runs, mean error {sum(map(abs, every)) / len(every):.1f} %, bias {sum(every) / len(every):+.1f} %; "
          f"{too_large} are said not to fit")


if __name__ == "__main__":
    main()
