#!/usr/bin/env python3
"""Live tensor bytes of rank 0 in one training step of PyTorch FSDP around a Hugging Face model, measured without a GPU.

torch's FSDP and transformers' model run on fake tensors over a fake process group; a dispatch mode follows every storage
from birth to death. The fake device is the CPU, so attention is its fused kernel and LayerNorm keeps its statistics in the
type of its input; transformers cannot see that positions are plain and makes an attention mask.

    pip install torch transformers    # 2.15.0 and 5.24.0 made the committed fsdp_memory.csv, a row or two for each call
    # fsdp_memory_held_out.csv, fsdp_memory_settings.csv and, with --real (tensors with storage), fsdp_memory_real.csv
    # were made the same way
    make_fsdp_memory.py MODEL WORLD BATCH SEQ [--runtime ...] [--precision ...] [--strategy ...] [--recompute ...] [--optimizer ...]
"""
import argparse, contextlib, gc, json, warnings, weakref

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.weak import WeakIdKeyDictionary
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config

GPT2 = {"gpt2": (768, 12, 12), "gpt2-medium": (1024, 24, 16), "gpt2-large": (1280, 36, 20), "gpt2-xl": (1600, 48, 25), "gpt2-tiny": (128, 3, 4)}  # width, layers, heads
LLAMA = {"llama-tiny": (128, 352, 3, 8, 2, 512, True), "llama-mha": (128, 352, 2, 8, 8, 512, False),  # width, feed-forward, layers, heads, key-value heads, vocabulary, tied
    "llama2-7b": (4096, 11008, 32, 32, 32, 32000, False), "llama2-13b": (5120, 13824, 40, 40, 40, 32000, False),
    "llama3-1b": (2048, 8192, 16, 32, 8, 128256, True), "llama3-8b": (4096, 14336, 32, 32, 8, 128256, False),
    "llama3-70b": (8192, 28672, 80, 64, 8, 128256, False)}
QWEN2 = {"qwen2-0.5b": (896, 4864, 24, 14, 2, 151936, True), "qwen2-7b": (3584, 18944, 28, 28, 4, 152064, False)}


def model_config(name):
    if name in GPT2:
        width, layers, heads = GPT2[name]  # 4096 positions in every gpt2 row, so that long sequences run
        config = GPT2Config(n_embd=width, n_layer=layers, n_head=heads, n_positions=4096, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    elif name == "mistral-7b":
        config = MistralConfig(sliding_window=None)
    else:
        width, ffn, layers, heads, kv, vocab, tied = (LLAMA | QWEN2)[name]
        kind = LlamaConfig if name in LLAMA else Qwen2Config
        config = kind(hidden_size=width, intermediate_size=ffn, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
                      vocab_size=vocab, max_position_embeddings=8192, tie_word_embeddings=tied)
    config.use_cache = False
    config._attn_implementation = "sdpa"
    return config


class LiveBytes(TorchDispatchMode):
    """Counts each tensor storage once, from the first operator that returns it until it dies or is resized."""

    def __init__(self):
        super().__init__()
        self.boxes, self.now, self.peak, self.peak_in, self.phase = WeakIdKeyDictionary(), 0, 0, None, ""

    def set_size(self, box, size):
        self.now += size - box[0]
        box[0] = size
        if self.now > self.peak:
            self.peak, self.peak_in = self.now, self.phase

    def track(self, tensor):
        if not isinstance(tensor, torch.Tensor):
            return
        storage = (tensor._local_tensor if isinstance(tensor, DTensor) else tensor).untyped_storage()
        if storage not in self.boxes:
            box = self.boxes[storage] = [0]
            weakref.finalize(storage, self.set_size, box, 0)
        self.set_size(self.boxes[storage], storage.size())

    def __enter__(self):
        self.resize = torch.UntypedStorage.resize_

        def resize(storage, size):
            result = self.resize(storage, size)
            if storage in self.boxes:
                self.set_size(self.boxes[storage], size)
            return result

        torch.UntypedStorage.resize_ = resize
        return super().__enter__()

    def __exit__(self, *error):
        torch.UntypedStorage.resize_ = self.resize
        return super().__exit__(*error)

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        out = op(*args, **(kwargs or {}))
        for tensor in tree_iter(out):
            self.track(tensor)
        return out


PREFETCH = {"pre": BackwardPrefetch.BACKWARD_PRE, "post": BackwardPrefetch.BACKWARD_POST, "none": None}


def sharded(model, blocks, mesh, runtime, precision, strategy, backward_prefetch="pre", forward_prefetch=False, depth=0):
    bf16 = precision == "bf16"
    if runtime == "fsdp1":
        mixed = MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16) if bf16 else None
        return FullyShardedDataParallel(
            model, auto_wrap_policy=ModuleWrapPolicy({type(blocks[0])}), mixed_precision=mixed, device_id=torch.device("cpu"),
            sharding_strategy=ShardingStrategy[strategy.upper()], use_orig_params=strategy == "full_shard",
            backward_prefetch=PREFETCH[backward_prefetch], forward_prefetch=forward_prefetch)
    mixed = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if bf16 else MixedPrecisionPolicy()
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=mixed, reshard_after_forward=strategy == "full_shard")
    fully_shard(model, mesh=mesh, mp_policy=mixed)  # the root is kept after forward, by default
    units = list(blocks)
    for i, unit in enumerate(units if depth else []):
        unit.set_modules_to_forward_prefetch(units[i + 1:i + 1 + depth])
        unit.set_modules_to_backward_prefetch(units[:i][::-1][:depth])
    return model


def measure(name, world, batch, seq, runtime="fsdp2", precision="bf16", strategy="full_shard", recompute="none", optimizer="foreach", steps=3, real=False,
            micro_batches=1, no_sync=False, **prefetch):
    """Returns (parameters, initial bytes, one dict per step); step 1 has no optimizer state before its update, step 3 is steady."""
    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    try:
        mesh = init_device_mesh("cpu", (world,))
        with contextlib.nullcontext() if real else FakeTensorMode(allow_non_fake_inputs=True):
            config = model_config(name)
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()
            parameters = sum(p.numel() for p in model.parameters())
            blocks = model.transformer.h if name in GPT2 else model.model.layers
            if recompute == "full":  # FSDP(checkpoint(block)): recomputation gathers nothing twice
                for i in range(len(blocks)):
                    blocks[i] = checkpoint_wrapper(blocks[i])
            net = sharded(model, blocks, mesh, runtime, precision, strategy, **prefetch)
            adamw = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=optimizer == "foreach")
            tokens = torch.randint(0, config.vocab_size, (batch, seq))
            live = LiveBytes()
            for tensor in [*net.parameters(), *net.buffers(), tokens]:
                live.track(tensor)
            initial, result = live.now, []
            with live:
                for _ in range(steps):
                    gc.collect()
                    live.peak = live.now
                    for k in range(micro_batches):
                        live.phase, last = "forward", k == micro_batches - 1
                        if runtime == "fsdp2":
                            net.set_requires_gradient_sync(last or not no_sync)
                            net.set_is_last_backward(last)
                        with net.no_sync() if runtime == "fsdp1" and no_sync and not last else contextlib.nullcontext():
                            loss = net(tokens, labels=tokens).loss
                            gc.collect()
                            after_forward, live.phase = live.now, "backward"
                            loss.backward()
                            del loss
                    live.phase = "update"
                    adamw.step()
                    adamw.zero_grad()
                    result.append(dict(peak_bytes=live.peak, peak_in=live.peak_in, after_forward_bytes=after_forward, after_step_bytes=live.now))
            return parameters, initial, result
    finally:
        dist.destroy_process_group()


def main():
    warnings.filterwarnings("ignore")
    cli = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    cli.add_argument("model", choices=[*GPT2, *LLAMA, *QWEN2, "mistral-7b"])
    for name in ("world", "batch", "seq"):
        cli.add_argument(name, type=int)
    cli.add_argument("--runtime", default="fsdp2", choices=["fsdp1", "fsdp2"])
    cli.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
    cli.add_argument("--strategy", default="full_shard", choices=["full_shard", "shard_grad_op"])
    cli.add_argument("--recompute", default="none", choices=["none", "full"])
    cli.add_argument("--optimizer", default="foreach", choices=["foreach", "forloop"])
    cli.add_argument("--backward-prefetch", default="pre", choices=list(PREFETCH))
    cli.add_argument("--depth", type=int, default=0)
    cli.add_argument("--micro-batches", type=int, default=1)
    for name in ("real", "forward-prefetch", "no-sync"):
        cli.add_argument(f"--{name}", action="store_true")
    parameters, initial, steps = measure(**{{"model": "name"}.get(k, k): v for k, v in vars(cli.parse_args()).items()})
    print(json.dumps(dict(parameters=parameters, initial_bytes=initial, steps=steps), indent=1))


if __name__ == "__main__":
    main()
