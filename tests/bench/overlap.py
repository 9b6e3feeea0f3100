#!/usr/bin/env python3
"""Communication that compute does not hide, measured over a shaped link and as the simulator says, for prefetch and limits.

    tests/bench/overlap.sh [--bin DIR] [--mbit N] [--steps N] [--rounds N] [--quick]      (it makes the two nodes, and calls this)

Two nodes of this machine with one rank each, joined by a link of N Mbit/s (4000 by default). The machine file is measured over this
link by foreshard-calibrate; then each setting is predicted and trained in turn. Prints one line per setting: step time and exposed
communication, as medians over the traced steps and rounds, and their shares; then what prefetching gains. The verdict says which
shares are more than 15 % from the simulator's, and which gains fall short of 0.9 of the simulator's. Exit code 1 if any is.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

# layers, width, heads, vocabulary, sequence, rows of a rank
MODELS = {"3.1M": (6, 192, 6, 2048, 256, 2), "13.8M": (6, 384, 6, 8192, 256, 2)}
# name, keys
SETTINGS = [(f"{prefetch}, limit {limit}", [f"--parallel.prefetch={prefetch}", f"--parallel.forward_prefetch={int(prefetch == 'pre')}", f"--parallel.limit={limit}"])
            for limit in ("2", "unlimited") for prefetch in ("none", "pre")]
WARM_UP = 3


def keys(model):
    layers, width, heads, vocab, seq, rows = MODELS[model]
    return [f"--model.layers={layers}", f"--model.width={width}", f"--model.heads={heads}", f"--model.vocab_size={vocab}",
            f"--model.max_seq_len={seq}", f"--train.seq_len={seq}", f"--train.local_batch_size={rows}", "--engine.threads=1"]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def calibrate(options, folder):
    machine = folder / "machine.json"
    run(["mpirun", "-n", "2", f"{options.bin}/foreshard-calibrate", "--cores=1", f"--out={machine}", *(["--quick"] if options.quick else [])])
    return machine


def predict(options, machine, model, setting):
    return json.loads(run([f"{options.bin}/foreshard-plan", *keys(model), *setting, "--parallel.world_size=2", "--machine.ranks_per_node=1", f"--machine.file={machine}", "--json"]))


def measure(options, folder, model, setting):
    """Step times and exposed communication of the steps after the warm-up."""
    run(["mpirun", "-n", "2", f"{options.bin}/foreshard-train", *keys(model), *setting, f"--train.steps={options.steps + WARM_UP}", f"--data.path={folder}/text_train.bin",
         f"--run.dir={folder}/runs", "--validation.freq=0", "--metrics.log_freq=1000000"])
    lines = (folder / "runs" / "train" / "latest" / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines if '"loss"' in line][WARM_UP:]
    return [(step["step_s"], step["comm_exposed_s"]) for step in steps]


def row(name, predicted, steps):
    step, exposed = (statistics.median(column) for column in zip(*steps))
    share, wanted = exposed / step, predicted["exposed_comm_s"] / predicted["step_time_s"]
    print(f"{name:22} {predicted['step_time_s'] * 1e3:9.1f} {step * 1e3:9.1f} {predicted['exposed_comm_s'] * 1e3:11.1f} {exposed * 1e3:9.1f} {wanted * 100:9.1f} {share * 100:8.1f} "
          f"{(share / wanted - 1) * 100:+8.0f}% {(predicted['step_time_s'] / step - 1) * 100:+9.1f}%", flush=True)
    return step, predicted["step_time_s"], share / wanted - 1


def compare(options, folder, machine, model):
    """Prints the table of a model; returns what is outside of its bound."""
    print(f"\n{model}: {'':14} {'step ms':>16} {'exposed ms':>22} {'exposed % of step':>20}\n{'':22} {'predicted':>9} {'measured':>9} {'predicted':>11} {'measured':>9} {'predicted':>9} {'measured':>8} {'off by':>9} {'step off':>10}")
    faults, times = [], {}
    taken = {name: [] for name, _ in SETTINGS}
    for _ in range(options.rounds):
        for name, setting in SETTINGS:
            taken[name] += measure(options, folder, model, setting)
    for name, setting in SETTINGS:
        measured, predicted, off = row(name, predict(options, machine, model, setting), taken[name])
        times[name] = measured, predicted
        if abs(off) > 0.15:
            faults.append(f"{model} {name}: exposed share off by {off * 100:+.0f} %")
    for limit in ("2", "unlimited"):
        gained, promised = (1 - pre / none for pre, none in zip(times[f"pre, limit {limit}"], times[f"none, limit {limit}"]))
        print(f"prefetching gains, limit {limit}: {gained * 100:.1f} % of the step, predicted {promised * 100:.1f} %")
        if gained < 0.9 * promised:
            faults.append(f"{model} limit {limit}: prefetching gains {gained * 100:.1f} %, predicted {promised * 100:.1f} %")
    return faults


def network(machine):
    facts = json.loads(machine.read_text())
    value = {key: facts[f"network_{key}"]["value"] for key in ("latency_s", "bytes_per_s", "core_s_per_byte")}
    return f"{value['bytes_per_s'] / 1e6:.0f} MB/s, latency {value['latency_s'] * 1e6:.0f} us, {value['core_s_per_byte'] * 1e9:.2f} ns of a core a byte"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--model", choices=[*MODELS, "all"], default="all")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a quick calibration")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text("".join(chr(97 + i * i % 23) for i in range(200_000)))
        run([f"{options.bin}/foreshard-data", "make", "--text", f"{folder}/text.txt", "--out", f"{folder}/text"])
        machine = calibrate(options, folder)
        print(f"network, as calibrated: {network(machine)}")
        faults = [fault for model in MODELS if options.model in (model, "all") for fault in compare(options, folder, machine, model)]
    print("\n" + "\n".join(faults or ["verdict: all within their bounds"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
