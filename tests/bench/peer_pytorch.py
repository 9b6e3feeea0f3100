#!/usr/bin/env python3
"""Foreshard beside PyTorch FSDP1, FSDP2 and compiled FSDP2: two ranks of one thread, gloo, fp32 or bf16. Run by peer_pytorch.sh.

The same model (GPT-2 shape: tied head, biases, GELU tanh, no dropout), the same tokens (a shard written here), the same
optimizer (AdamW, fused in PyTorch; clip at norm 1), one micro-batch per step. Each round runs every contestant once, in turn;
what is printed are medians over rounds of each run's median step, and the median over rounds of the ratio to the round's best
PyTorch. Resident memory is the peak of the largest rank, as the operating system counts it (ru_maxrss).
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

RANKS = 2
SIZES = {  # seq and batch per rank; steps timed, after warm-up steps
    "3m": dict(width=192, layers=6, heads=6, vocab=2048, seq=256, batch=2, steps=30, warmup=5),
    "14m": dict(width=384, layers=6, heads=6, vocab=8192, seq=256, batch=2, steps=12, warmup=3),
    "gpt2": dict(width=768, layers=12, heads=12, vocab=50304, seq=1024, batch=1, steps=3, warmup=1),
}
PEERS = ("fsdp1", "fsdp2", "fsdp2-compiled")


def gigaflop_per_step(size: dict, parameters: int) -> float:
    """Per rank: (6·N + 12·layers·width·seq)·tokens."""
    tokens = size["batch"] * size["seq"]
    return (6 * parameters + 12 * size["layers"] * size["width"] * size["seq"]) * tokens / 1e9


def parameter_count(size: dict) -> int:
    width = size["width"]
    return (size["vocab"] + size["seq"]) * width + size["layers"] * (12 * width * width + 13 * width) + 2 * width


def write_tokens(path: pathlib.Path, size: dict) -> None:
    """An llm.c shard of uint16 tokens (magic 20240520, version 1, count), frequencies falling as in text."""
    import numpy

    count = RANKS * size["batch"] * size["seq"] * (size["steps"] + size["warmup"] + 1) + 1
    header = numpy.zeros(256, dtype="<i4")
    header[:3] = (20240520, 1, count)
    uniform = numpy.random.default_rng(1).random(count)
    tokens = numpy.minimum(size["vocab"] ** uniform, size["vocab"] - 1).astype("<u2")
    path.write_bytes(header.tobytes() + tokens.tobytes())


# --- PyTorch: one rank -------------------------------------------------------------------------------------------------------


def make_model(size: dict):
    import torch
    from torch import nn

    width, heads = size["width"], size["heads"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.attn_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, seq, _ = x.shape
            q, k, v = (t.view(batch, seq, heads, -1).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(width, dim=2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attn_proj(y.transpose(1, 2).reshape(batch, seq, width))
            return x + self.mlp_proj(nn.functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(size["vocab"], width), nn.Embedding(size["seq"], width)
            self.blocks = nn.ModuleList(Block() for _ in range(size["layers"]))
            self.ln_f = nn.LayerNorm(width)
            self.head = nn.Linear(width, size["vocab"], bias=False)
            self.head.weight = self.wte.weight

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.ln_f(x))
            return nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    torch.manual_seed(0)
    model = Gpt()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    return model, Block


def shard_model(model, block_type, peer: str, dtype: str):
    """The sharded model and its gradient clipping."""
    import functools

    import torch
    from torch.distributed.device_mesh import init_device_mesh

    if peer == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        mixed = MixedPrecision(torch.bfloat16, torch.float32) if dtype == "bf16" else None
        model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({block_type}), use_orig_params=True,
                                         device_id=torch.device("cpu"), mixed_precision=mixed)
        return model, functools.partial(model.clip_grad_norm_, 1.0)
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if dtype == "bf16" else MixedPrecisionPolicy()
    mesh = init_device_mesh("cpu", (RANKS,))
    for block in model.blocks:
        if peer == "fsdp2-compiled":
            block.compile()
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model, lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def peer_rank(peer: str, size: dict, tokens_file: str, dtype: str) -> None:
    """Trains and prints the median step time in seconds as JSON (rank 0)."""
    import time

    import numpy
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, batch, seq = dist.get_rank(), size["batch"], size["seq"]
    model, clip = shard_model(*make_model(size), peer, dtype)
    # By name: FSDP1 shows its shards as flat tensors.
    is_decayed = lambda parameter_name: parameter_name.endswith("weight") and "ln_" not in parameter_name
    decayed = [p for n, p in model.named_parameters() if is_decayed(n)]
    others = [p for n, p in model.named_parameters() if not is_decayed(n)]
    adamw = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=3e-4,
                              betas=(0.9, 0.95), fused=True)
    text = torch.from_numpy(numpy.fromfile(tokens_file, dtype="<u2", offset=1024).astype(numpy.int64))
    times, losses = [], []
    for step in range(size["warmup"] + size["steps"]):
        dist.barrier()
        start = time.perf_counter()
        first = (step * RANKS + rank) * batch * seq
        window = text[first : first + batch * seq + 1]
        loss = model(window[:-1].view(batch, seq), window[1:].view(batch, seq))
        loss.backward()
        clip()
        adamw.step()
        adamw.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
    if rank == 0:
        print(json.dumps({"step_s": statistics.median(times[size["warmup"] :]), "first_loss": losses[0], "last_loss": losses[-1]}))
    dist.destroy_process_group()


# --- The driver --------------------------------------------------------------------------------------------------------------


def wait(process: subprocess.Popen, log: pathlib.Path) -> int:
    """Waits and returns the peak resident bytes of the process and its children. What it said is in `log`."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{log.read_text()[-4000:]}\npeer_pytorch: {' '.join(map(str, process.args))} ended with {process.returncode}")
    return usage.ru_maxrss * 1024


def free_port() -> str:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def run_peer(peer: str, name: str, dtype: str, tokens: pathlib.Path, folder: pathlib.Path) -> dict:
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": str(RANKS),
                                "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    out, log, cores = folder / "peer.out", folder / "peer.log", sorted(os.sched_getaffinity(0))
    ranks = []
    with open(out, "w") as stream, open(log, "w") as messages:
        for rank in range(RANKS):
            core = {cores[rank]} if len(cores) >= RANKS else set(cores)
            ranks.append(subprocess.Popen([sys.executable, __file__, "--rank-of", peer, "--size", name, "--tokens", str(tokens), "--dtype", dtype],
                                          env=environment | {"RANK": str(rank)}, stdout=stream, stderr=messages,
                                          preexec_fn=lambda core=core: os.sched_setaffinity(0, core)))
        resident = max(wait(process, log) for process in ranks)
    return json.loads(out.read_text().splitlines()[-1]) | {"resident_bytes": resident}


def run_foreshard(name: str, dtype: str, tokens: pathlib.Path, folder: pathlib.Path) -> dict:
    size, run_dir = SIZES[name], folder / "run"
    shutil.rmtree(run_dir, ignore_errors=True)
    keys = {"model.layers": size["layers"], "model.width": size["width"], "model.heads": size["heads"], "model.vocab_size":
            size["vocab"], "model.max_seq_len": size["seq"], "train.seq_len": size["seq"], "train.local_batch_size": size["batch"],
            "train.steps": size["steps"] + size["warmup"], "data.path": tokens, "run.dir": run_dir, "optimizer.lr": 3e-4,
            "lr_scheduler.decay": "none", "engine.threads": 1, "precision.param": dtype}
    command = ["mpirun", "-n", str(RANKS), str(pathlib.Path(os.environ["FORESHARD_BIN"]) / "foreshard-train")]
    log = folder / "foreshard.log"
    with open(log, "w") as messages:
        process = subprocess.Popen(command + [f"--{key}={value}" for key, value in keys.items()], stdout=messages, stderr=messages,
                                   env=os.environ | {"OMP_NUM_THREADS": "1"})
    resident = wait(process, log)
    lines = [json.loads(line) for path in run_dir.rglob("metrics.jsonl") for line in path.read_text().splitlines()]
    steps = [line for line in lines if "step_s" in line][size["warmup"] :]
    return {"step_s": statistics.median(line["step_s"] for line in steps), "last_loss": steps[-1]["loss"],
            "resident_bytes": resident}


def compare(name: str, dtype: str, peers: list[str], rounds: int) -> dict:
    size, with_foreshard = SIZES[name], (pathlib.Path(os.environ["FORESHARD_BIN"]) / "foreshard-train").exists()
    results = {contestant: [] for contestant in (["foreshard"] if with_foreshard else []) + peers}
    with tempfile.TemporaryDirectory() as scratch:
        tokens = pathlib.Path(scratch) / "tokens.bin"
        write_tokens(tokens, size)
        for _ in range(rounds):
            for contestant, runs in results.items():
                runs.append(run_foreshard(name, dtype, tokens, pathlib.Path(scratch)) if contestant == "foreshard"
                            else run_peer(contestant, name, dtype, tokens, pathlib.Path(scratch)))
    return summary(name, dtype, results)


def summary(name: str, dtype: str, results: dict) -> dict:
    size, parameters = SIZES[name], parameter_count(SIZES[name])
    median = lambda runs, key: statistics.median(run[key] for run in runs)
    table = {c: {"step_ms": 1e3 * median(runs, "step_s"), "resident_mib": median(runs, "resident_bytes") / 2**20,
                 "tokens_per_s": RANKS * size["batch"] * size["seq"] / median(runs, "step_s"),
                 "gflops_per_rank": gigaflop_per_step(size, parameters) / median(runs, "step_s"),
                 "last_loss": runs[-1]["last_loss"]} for c, runs in results.items()}
    print(f"\n{name}: {parameters / 1e6:.1f} M parameters, {size['batch'] * size['seq']} tokens per rank, {RANKS} ranks x 1 thread, {dtype}")
    print(f"{'':16}{'step ms':>10}{'tokens/s':>10}{'GF/rank':>10}{'RSS MiB':>10}{'last loss':>11}")
    for contestant, row in table.items():
        print(f"{contestant:16}{row['step_ms']:10.1f}{row['tokens_per_s']:10.0f}{row['gflops_per_rank']:10.1f}"
              f"{row['resident_mib']:10.0f}{row['last_loss']:11.4f}")
    if "foreshard" in results and len(results) > 1:
        peers = [runs for contestant, runs in results.items() if contestant != "foreshard"]
        rounds = range(len(results["foreshard"]))
        speed = statistics.median(min(p[i]["step_s"] for p in peers) / results["foreshard"][i]["step_s"] for i in rounds)
        memory = statistics.median(results["foreshard"][i]["resident_bytes"] / min(p[i]["resident_bytes"] for p in peers) for i in rounds)
        print(f"foreshard / best PyTorch: tokens/s {speed:.2f} x, resident memory {memory:.2f} x")
        table["ratios"] = {"tokens_per_s": speed, "resident": memory}
    sys.stdout.flush()
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="3m,14m,gpt2", help="comma-separated: " + ", ".join(SIZES))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", default="fp32", choices=("fp32", "bf16"), help="bf16: parameters, gathers and products; fp32 shards, reductions")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers there")
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    parser.add_argument("--tokens", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank_of:
        return peer_rank(arguments.rank_of, SIZES[arguments.size], arguments.tokens, arguments.dtype)
    if not (pathlib.Path(os.environ["FORESHARD_BIN"]) / "foreshard-train").exists():
        print(f"peer_pytorch: no foreshard-train in {os.environ['FORESHARD_BIN']} (FORESHARD_BIN): PyTorch alone")
    results = {name: compare(name, arguments.dtype, arguments.peers.split(","), arguments.rounds) for name in arguments.size.split(",")}
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
