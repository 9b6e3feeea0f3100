#!/usr/bin/env python3
"""Predicted beside measured step time, memory and traffic, for models that calibration did not measure.

    tests/bench/prediction.py BIN MACHINE.json DATA_train.bin [--rounds 3] [--strategies]

For each model size and rank count, `foreshard-plan` and `foreshard-train` are run in turn, `rounds` times; medians are compared.
Only 1 and 2 ranks, and 4 ranks on 2 cores ("oversubscribed"); with
--strategies, one model in every strategy, precision, way to accumulate and to recompute. Prints one line per case and exits 1 if a step time is off by more
than its bound, or an arena or a collective differs by a byte.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

# layers, width, heads, vocabulary, sequence, rows of a rank
MODELS = {"0.9M": (4, 128, 4, 256, 192, 5), "4.3M": (5, 240, 6, 2500, 256, 2), "13M": (7, 352, 8, 5000, 224, 2)}
CASES = [(name, ranks, 0.10, "") for name in MODELS for ranks in (1, 2)] + [("0.9M", 4, 0.20, ""), ("4.3M", 4, 0.20, "")]
STRATEGIES = ["--parallel.strategy=shard_grad_op", "--parallel.strategy=no_shard", "--parallel.strategy=zero1", "--parallel.prefetch=none",
              "--parallel.limit=1", "--precision.param=bf16", "--precision.param=bf16 --precision.reduce=bf16",
              "--activation_checkpoint.mode=selective", "--activation_checkpoint.mode=full",
              "--train.global_batch_size=12", "--train.global_batch_size=12 --parallel.accumulation=no_sync"]
STRATEGY_CASES = [("4.3M", 2, 0.10, keys) for keys in STRATEGIES] + [
    ("4.3M", 4, 0.20, keys) for keys in ("--parallel.strategy=hybrid_shard --parallel.shard_degree=2",
                                         "--parallel.strategy=hybrid_shard_grad_op --parallel.shard_degree=2",
                                         "--parallel.reshard_after_forward=2")]


def keys(model):
    layers, width, heads, vocab, seq, rows = model
    return [f"--model.layers={layers}", f"--model.width={width}", f"--model.heads={heads}", f"--model.vocab_size={vocab}",
            f"--model.max_seq_len={seq}", f"--train.seq_len={seq}", f"--train.local_batch_size={rows}"]


def predict(options, model, ranks, extra):
    command = [f"{options.bin}/foreshard-plan", *keys(model), *extra.split(), f"--parallel.world_size={ranks}", "--engine.threads=1", f"--machine.file={options.machine}", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(options, model, ranks, extra, folder):
    command = ["mpirun", "-n", str(ranks), f"{options.bin}/foreshard-train", *keys(model), *extra.split(), "--engine.threads=1", f"--train.steps={options.steps}",
               f"--data.path={options.data}", f"--run.dir={folder}", "--validation.freq=0", "--metrics.log_freq=1000000"]
    subprocess.run(command, check=True, capture_output=True)
    return json.loads((pathlib.Path(folder) / "train" / "latest" / "run.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("machine")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--strategies", action="store_true")
    options = parser.parse_args()
    failed = False
    print(f"{'model':6} {'ranks':>5} {'predicted ms':>13} {'measured ms':>12} {'error %':>8} {'arena':>12} {'collectives':>12} {'resident':>9}")
    for name, ranks, bound, extra in STRATEGY_CASES if options.strategies else CASES:
        model, predicted, measured = MODELS[name], [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.rounds):
                predicted.append(predict(options, model, ranks, extra))
                measured.append(measure(options, model, ranks, extra, folder))
        p, m = (statistics.median(run["step_time_s"] for run in runs) for runs in (predicted, measured))
        error = p / m - 1
        arena = predicted[-1]["arena_bytes"] == measured[-1]["arena_bytes"]
        traffic = all(predicted[-1]["collectives"][kind][field] == measured[-1]["collectives"][kind][field]
                      for kind in ("all_gather", "reduce_scatter", "all_reduce") for field in ("count", "bytes"))
        resident = predicted[-1].get("rss_bytes", 0) / measured[-1]["rss_bytes"] - 1
        failed |= abs(error) > bound or not arena or not traffic
        print(f"{name:6} {ranks:5d} {p * 1e3:13.1f} {m * 1e3:12.1f} {error * 100:+8.1f} {'equal' if arena else 'DIFFERS':>12} {'equal' if traffic else 'DIFFER':>12} "
              f"{resident * 100:+8.1f}%  {extra}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
