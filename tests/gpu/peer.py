#!/usr/bin/env python3
"""The same work in PyTorch on one GPU: peer.py OUT.json [PART...]

Parts: rates (copy and bf16 product), attention (scaled_dot_product_attention by cuDNN and by its flash kernel), and for gpt2
and gpt2-xl the training step under FSDP2, eager and compiled (MODEL-eager, MODEL-compiled). All by default. The model is that
of tests/bench/peer_pytorch.py, the rows and tokens are those of gpu_bench; parameters, gathers and products are bf16, shards
and reductions fp32, AdamW fused, clipping at norm 1. Compiled: every block and the loss. OUT.json is written anew after each
part; a part that fails is told about in it, and the others go on.
"""
import gc
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
VOCAB, SEQ, WARM_UP = 50304, 1024, 4
MODELS = {
    "gpt2": dict(width=768, layers=12, heads=12, vocab=VOCAB, seq=SEQ, batch=32, steps=30),
    "gpt2-xl": dict(width=1600, layers=48, heads=25, vocab=VOCAB, seq=SEQ, batch=16, steps=10),
}
ATTENTION = [(32, 1024, 12, 64), (16, 1024, 25, 64), (4, 4096, 32, 128)]  # batch, seq, heads, width: as gpu_bench
PARTS = ["rates", "attention"] + [f"{model}-{way}" for model in MODELS for way in ("eager", "compiled")]


def seconds_of(call, repeats=15, calls=4):
    """The middle of several measurements of one call, by events; the first call does not count."""
    import torch

    call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(repeats):
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls * 1e-3)
    return statistics.median(times)


def rates(_):
    import torch

    source = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    n = 8192
    a, b = (torch.randn(n, n, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    return {"copy_bytes_per_s": 2 * source.numel() / seconds_of(lambda: target.copy_(source)),
            "matmul_flops_per_s": 2 * n**3 / seconds_of(lambda: torch.mm(a, b.t(), out=c))}


def attention(_):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    rows = []
    for batch, seq, heads, width in ATTENTION:
        # As in the model: heads side by side in one token's row.
        q, k, v = (torch.randn(batch, seq, heads, width, dtype=torch.bfloat16, device="cuda").transpose(1, 2).requires_grad_() for _ in range(3))
        for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
            row = dict(backend=name, batch=batch, seq=seq, heads=heads, width=width)
            try:
                with sdpa_kernel(backend):
                    forward = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                    y = forward()
                    dy = torch.randn_like(y)
                    row["forward_s"] = seconds_of(lambda: forward().detach())
                    row["backward_s"] = seconds_of(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True))
            except RuntimeError as error:  # not built in, or not for this shape
                row["failed"] = str(error).splitlines()[0]
            rows.append(row)
    return rows


def batch_of(size):
    """The tokens and targets of gpu_bench."""
    import torch

    i = torch.arange(size["batch"] * size["seq"], dtype=torch.int64)
    shape = (size["batch"], size["seq"])
    return ((i * i * 7 + 3 * i) % size["vocab"]).view(shape).cuda(), ((i * 5 + 1) % size["vocab"]).view(shape).cuda()


def sharded(size, compiled):
    import torch
    from peer_pytorch import make_model
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    with torch.device("cuda"):
        model, _ = make_model(size)
    policy, mesh = MixedPrecisionPolicy(torch.bfloat16, torch.float32), init_device_mesh("cuda", (1,))
    for block in model.blocks:
        if compiled:
            block.compile()
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def step(part):
    """{"step_s": seconds of a step, the middle of 5 windows without a wait inside, …}."""
    import torch

    name, way = part.rsplit("-", 1)
    size, functional, plain_loss = MODELS[name], torch.nn.functional, torch.nn.functional.cross_entropy
    try:
        if way == "compiled":
            functional.cross_entropy = torch.compile(plain_loss)
        torch.cuda.reset_peak_memory_stats()
        model = sharded(size, way == "compiled")
        decayed = [p for n, p in model.named_parameters() if n.endswith("weight") and "ln_" not in n]
        others = [p for n, p in model.named_parameters() if not (n.endswith("weight") and "ln_" not in n)]
        adamw = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=1e-4,
                                  betas=(0.9, 0.95), fused=True)
        tokens, targets = batch_of(size)

        def one():
            loss = model(tokens, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adamw.step()
            adamw.zero_grad(set_to_none=True)
            return loss

        began = time.perf_counter()
        first = one().item()
        for _ in range(WARM_UP - 1):
            one()
        torch.cuda.synchronize()
        warm_up_s = time.perf_counter() - began
        windows, per_window = [], max(1, size["steps"] // 5)
        for _ in range(5):
            began = time.perf_counter()
            for _ in range(per_window):
                loss = one()
            torch.cuda.synchronize()
            windows.append((time.perf_counter() - began) / per_window)
        return {"model": name, "way": way, "rows": size["batch"], "seq": SEQ, "step_s": statistics.median(windows), "warm_up_s": warm_up_s,
                "first_loss": first, "last_loss": loss.item(), "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
                "peak_reserved_bytes": torch.cuda.max_memory_reserved()}
    finally:
        functional.cross_entropy = plain_loss


def release():
    import torch

    gc.collect()
    torch.cuda.empty_cache()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out, parts = pathlib.Path(sys.argv[1]), sys.argv[2:] or PARTS
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        print(f"peer.py: skipped: {error}")
        sys.exit(77)
    if not torch.cuda.is_available():
        print("peer.py: skipped: PyTorch sees no CUDA device")
        sys.exit(77)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    result = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "steps": [], "failed": {}, "seconds": {}}
    for part in parts:
        began = time.perf_counter()
        try:
            found = {"rates": rates, "attention": attention}.get(part, step)(part)
            if part in ("rates", "attention"):
                result[part] = found
            else:
                result["steps"].append(found)
        except Exception as error:  # whatever it is, the other parts go on
            result["failed"][part] = f"{type(error).__name__}: {error}"[:2000]
            print(f"peer.py: {part} failed: {result['failed'][part]}", flush=True)
        release()
        result["seconds"][part] = time.perf_counter() - began
        out.write_text(json.dumps(result, indent=1))
        print(f"peer.py: {part}: {result['seconds'][part]:.1f} s", flush=True)
    dist.destroy_process_group()
    sys.exit(1 if result["failed"] else 0)


if __name__ == "__main__":
    main()
