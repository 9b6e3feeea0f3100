#!/usr/bin/env python3
"""Live tensor bytes of rank 0 in one training step of PyTorch FSDP or DDP around a Hugging Face model, measured without a GPU.

torch's FSDP and transformers' model run on fake tensors over a fake process group; a dispatch mode follows every storage
from birth to death. The fake device is the CPU, so attention is its fused kernel and LayerNorm keeps its statistics in the
type of its input; transformers cannot see that positions are plain and makes an attention mask. DDP's reducer, in C++,
reads its own tensors: --runtime ddp wants --real. With --lora-rank the base is frozen and projections get peft's matrices beside them (or,
with --peft --real, by peft itself); a wholly frozen unit of FSDP1 wants --real, as its reshard compares addresses. The order of collectives is that of its last step: AG: RS: AR: and F: B: where a unit's forward or backward begins, |microN and
|step; DDP's reductions come with their elements.

    pip install torch transformers    # 2.15.0 and 5.24.0 made the committed tables
    make_fsdp_memory.py MODEL WORLD_SIZE LOCAL_BATCH SEQ_LEN [--setting value ...]    # one row: its bytes as JSON
    make_fsdp_memory.py --table fsdp_memory_families.csv               # measures each row of a table again, in place

A table's columns are settings by the names of the arguments, then what was measured. With --trace every change of live
bytes is printed, with the operator that made or freed it.
"""
import argparse, contextlib, csv, gc, json, sys, warnings, weakref

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy, fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_init, _fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.weak import WeakIdKeyDictionary
import transformers
from transformers.initialization import no_init_weights

from issue_order import Order
from lora_adapters import adapt

GPT2 = {"gpt2": (768, 12, 12), "gpt2-medium": (1024, 24, 16), "gpt2-large": (1280, 36, 20), "gpt2-xl": (1600, 48, 25), "gpt2-tiny": (128, 3, 4)}  # width, layers, heads
# width, feed-forward, layers, heads, key-value heads, vocabulary, tied, other keys
LLAMA = {"llama-tiny": (128, 352, 3, 8, 2, 512, True), "llama-mha": (128, 352, 2, 8, 8, 512, False), "llama-odd": (120, 331, 2, 6, 3, 509, False),
         "llama-wide": (128, 352, 2, 8, 2, 512, False, dict(head_dim=24)), "llama-biased": (128, 352, 2, 8, 2, 512, False, dict(attention_bias=True, mlp_bias=True)),
         "llama2-7b": (4096, 11008, 32, 32, 32, 32000, False), "llama2-13b": (5120, 13824, 40, 40, 40, 32000, False),
         "llama3-1b": (2048, 8192, 16, 32, 8, 128256, True), "llama3-8b": (4096, 14336, 32, 32, 8, 128256, False),
         "llama3-70b": (8192, 28672, 80, 64, 8, 128256, False)}
QWEN2 = {"qwen2-window": (128, 352, 3, 8, 2, 512, True, dict(use_sliding_window=True, sliding_window=32, max_window_layers=1)), "qwen2-0.5b": (896, 4864, 24, 14, 2, 151936, True), "qwen2-7b": (3584, 18944, 28, 28, 4, 152064, False)}
QWEN3 = {"qwen3-tiny": (128, 352, 2, 4, 2, 512, True, dict(head_dim=64)), "qwen3-0.6b": (1024, 3072, 28, 16, 8, 151936, True, dict(head_dim=128)),
         "qwen3-8b": (4096, 12288, 36, 32, 8, 151936, False, dict(head_dim=128))}
MISTRAL = {"mistral-7b": (4096, 14336, 32, 32, 8, 32000, False, dict(sliding_window=None)), "mistral-window": (128, 352, 2, 8, 2, 512, False, dict(sliding_window=32))}
GEMMA = {"gemma-tiny": (128, 352, 2, 4, 1, 512, True, dict(head_dim=64)), "gemma-2b": (2048, 16384, 18, 8, 1, 256000, True, dict(head_dim=256)),
         "gemma-7b": (3072, 24576, 28, 16, 16, 256000, True, dict(head_dim=256))}
PHI = {"phi-tiny": (128, 512, 2, 4, 4, 512, False), "phi-2": (2560, 10240, 32, 32, 32, 51200, False)}
NEOX = {"neox-tiny": (128, 512, 2, 4, 4, 512, False), "pythia-1b": (2048, 8192, 16, 8, 8, 50304, False), "gpt-neox-20b": (6144, 24576, 44, 64, 64, 50432, False)}
OPT = {"opt-tiny": (128, 512, 2, 4, 512), "opt-125m": (768, 3072, 12, 12, 50272), "opt-1.3b": (2048, 8192, 24, 32, 50272), "opt-13b": (5120, 20480, 40, 40, 50272)}
MPT = {"mpt-tiny": (128, 3, 4, 512), "mpt-odd": (120, 2, 6, 509), "mpt-1b": (2048, 24, 16, 50368), "mpt-7b": (4096, 32, 32, 50432)}  # width, layers, heads, vocabulary
T5 = {"t5-tiny": (128, 32, 256, 3, 4, 512, "relu"), "t5-gated": (128, 16, 352, 2, 6, 512, "gated-gelu"), "t5-small": (512, 64, 2048, 6, 8, 32128, "relu"),
      "flan-t5-base": (768, 64, 2048, 12, 12, 32128, "gated-gelu"), "t5-3b": (1024, 128, 16384, 24, 32, 32128, "relu"),
      "t5-11b": (1024, 128, 65536, 24, 128, 32128, "relu"), "t5-untied": (128, 16, 352, 2, 6, 509, "gated-gelu"),
      "t5-v1.1-small": (512, 64, 1024, 8, 6, 32128, "gated-gelu"), "t5-v1.1-xl": (2048, 64, 5120, 24, 32, 32128, "gated-gelu")}  # width, head width, feed-forward, layers, heads, vocabulary
VIT = {"vit-tiny": (128, 512, 3, 4, 32, 8), "vit-base": (768, 3072, 12, 12, 224, 16), "vit-large": (1024, 4096, 24, 16, 224, 16), "vit-huge": (1280, 5120, 32, 16, 224, 14)}


def llama_like(kind, width, ffn, layers, heads, kv, vocab, tied, more=None):
    return kind(hidden_size=width, intermediate_size=ffn, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, vocab_size=vocab,
                max_position_embeddings=8192, tie_word_embeddings=tied, **(more or {}))


def has_own_head(name):
    return name == "t5-untied" or name.startswith("t5-v1.1")


def model_config(name, p):
    """Its configuration with dropout probability p, and where its blocks are."""
    if name in GPT2:
        width, layers, heads = GPT2[name]  # 4096 positions in every gpt2 row, so that long sequences run
        return transformers.GPT2Config(n_embd=width, n_layer=layers, n_head=heads, n_positions=4096, resid_pdrop=p, embd_pdrop=p, attn_pdrop=p), "transformer.h"
    if name in OPT:
        width, ffn, layers, heads, vocab = OPT[name]
        return transformers.OPTConfig(hidden_size=width, ffn_dim=ffn, num_hidden_layers=layers, num_attention_heads=heads, vocab_size=vocab, word_embed_proj_dim=width,
                                      max_position_embeddings=4096, dropout=p, attention_dropout=p, layerdrop=0), "model.decoder.layers"
    if name in MPT:
        width, layers, heads, vocab = MPT[name]
        return transformers.MptConfig(d_model=width, n_layers=layers, n_heads=heads, vocab_size=vocab, max_seq_len=2048, attn_config=dict(attn_pdrop=p) if p else None), "transformer.blocks"
    if name in NEOX:
        return llama_like(transformers.GPTNeoXConfig, *NEOX[name], dict(hidden_dropout=p, attention_dropout=p)), "gpt_neox.layers"
    if name in PHI:
        return llama_like(transformers.PhiConfig, *PHI[name], dict(resid_pdrop=p, embd_pdrop=p, attention_dropout=p)), "model.layers"
    if name in T5:
        width, head, ffn, layers, heads, vocab, activation = T5[name]
        return transformers.T5Config(d_model=width, d_kv=head, d_ff=ffn, num_layers=layers, num_heads=heads, vocab_size=vocab, feed_forward_proj=activation,
                                     dropout_rate=p, decoder_start_token_id=0, tie_word_embeddings=not has_own_head(name)), "encoder.block decoder.block"
    if name in VIT:
        width, ffn, layers, heads, image, patch = VIT[name]
        return transformers.ViTConfig(hidden_size=width, intermediate_size=ffn, num_hidden_layers=layers, num_attention_heads=heads, image_size=image, patch_size=patch,
                                      hidden_dropout_prob=p, attention_probs_dropout_prob=p, num_labels=1000), "vit.layers"
    for table, kind in ((LLAMA, "Llama"), (QWEN2, "Qwen2"), (QWEN3, "Qwen3"), (MISTRAL, "Mistral"), (GEMMA, "Gemma")):
        if name in table:
            return llama_like(getattr(transformers, kind + "Config"), *table[name]), "model.layers"
    raise SystemExit(f"no model {name}")


AUTO = {transformers.T5Config: transformers.AutoModelForSeq2SeqLM, transformers.ViTConfig: transformers.AutoModelForImageClassification}


def block_lists(model, paths):
    return [model.get_submodule(path) for path in paths.split()]


class LiveBytes(TorchDispatchMode):
    """Counts each tensor storage once, from the first operator that returns it until it dies or is resized."""

    def __init__(self, trace=False):
        super().__init__()
        self.boxes, self.now, self.peak, self.peak_in, self.phase = WeakIdKeyDictionary(), 0, 0, None, ""
        self.trace, self.operator, self.order, self.is_ddp = trace, "", None, False

    def set_size(self, box, size):
        if self.trace and size != box[0]:
            print(f"{size - box[0]:+d} {self.phase} {self.operator} now {self.now + size - box[0]}")
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
        if self.order and self.phase != "update":  # clipping sums the norm there
            self.order.add(str(op), args, self.is_ddp)
        out = op(*args, **(kwargs or {}))
        if self.trace:
            self.operator = str(op)
            print("      " + self.operator)
        for tensor in tree_iter(out):
            self.track(tensor)
        return out


PREFETCH = {"pre": BackwardPrefetch.BACKWARD_PRE, "post": BackwardPrefetch.BACKWARD_POST, "none": None}
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def outside_of_fake_tensors(function):
    """A mesh reads its own tensors of ranks."""
    def call(*arguments):
        with unset_fake_temporarily():
            return function(*arguments)
    return call


def sharded_by_fsdp1(model, blocks, mesh, s):
    mixed = None if s.precision == "fp32" else MixedPrecision(TYPES[s.precision], TYPES[s.reduce], TYPES[s.precision])
    strategy = s.strategy.upper()
    if s.replicas > 1:
        strategy = {"FULL_SHARD": "HYBRID_SHARD", "SHARD_GRAD_OP": "_HYBRID_SHARD_ZERO2"}[strategy]
    policy = ModuleWrapPolicy({type(blocks[0])}) if s.wrap == "block" else None
    return FullyShardedDataParallel(
        model, auto_wrap_policy=policy, mixed_precision=mixed, device_id=torch.device("cpu"), device_mesh=mesh if s.replicas > 1 else None,
        sharding_strategy=ShardingStrategy[strategy], use_orig_params=s.strategy == "full_shard" or s.lora_rank > 0,
        backward_prefetch=PREFETCH[s.backward_prefetch], forward_prefetch=s.forward_prefetch)


def units_of(blocks, s):
    """Single blocks, or lists of several that are one unit."""
    if s.wrap == "root":
        return []
    size = int(s.wrap.removeprefix("blocks:")) if s.wrap.startswith("blocks:") else 1
    return list(blocks) if size == 1 else [blocks[i:i + size] for i in range(0, len(blocks), size)]


def sharded_by_fsdp2(model, blocks, mesh, s):
    mixed = MixedPrecisionPolicy() if s.precision == "fp32" else MixedPrecisionPolicy(TYPES[s.precision], TYPES[s.reduce])
    reshard = s.reshard_to or s.strategy == "full_shard"
    _fully_shard._get_post_forward_mesh_info = outside_of_fake_tensors(_fsdp_init._get_post_forward_mesh_info)
    units = units_of(blocks, s)
    for unit in units:
        fully_shard(unit, mesh=mesh, mp_policy=mixed, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh, mp_policy=mixed)  # the root is kept after forward, by default
    for i, unit in enumerate(units if s.depth else []):
        unit.set_modules_to_forward_prefetch(units[i + 1:i + 1 + s.depth])
        unit.set_modules_to_backward_prefetch(units[:i][::-1][:s.depth])
    return model


def replicated_by_ddp(model, _blocks, _mesh, s):  # its buckets live from here on
    with s.live:
        return DistributedDataParallel(model, bucket_cap_mb=s.bucket_cap_mb or None, gradient_as_bucket_view=s.bucket_view, init_sync=False)


WRAPPERS = {"fsdp1": sharded_by_fsdp1, "fsdp2": sharded_by_fsdp2, "ddp": replicated_by_ddp}


def optimizer(parameters, name):
    how = dict(foreach=name.endswith("foreach"), fused=name.endswith("fused"))
    if name.startswith("sgd"):
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9 if "momentum" in name else 0, **how)
    return torch.optim.AdamW(parameters, lr=1e-4, **how)


def inputs_of(config, batch, seq):
    if isinstance(config, transformers.ViTConfig):
        return dict(pixel_values=torch.randn(batch, config.num_channels, config.image_size, config.image_size), labels=torch.randint(0, config.num_labels, (batch,)))
    tokens = torch.randint(0, config.vocab_size, (batch, seq))
    return dict(input_ids=tokens, labels=tokens)


def prepared(s, mesh):
    """The configuration and the sharded model."""
    config, paths = model_config(s.model, s.dropout)
    config.use_cache = False
    config._attn_implementation = s.attention
    if s.model in MPT:
        config._attn_implementation = "eager"
    with no_init_weights():  # values do not matter, and fake tensors cannot draw all of them
        model = AUTO.get(type(config), transformers.AutoModelForCausalLM).from_config(config, dtype=TYPES[s.weights]).train()
    model.tie_weights()
    if has_own_head(s.model):  # as from_pretrained leaves it, where the checkpoint has both tables
        model.lm_head.weight = nn.Parameter(torch.empty_like(model.shared.weight))
    inner_blocks = [block for blocks in block_lists(model, paths) for block in blocks]
    if s.lora_rank:
        adapt(model, inner_blocks, s)
    if s.recompute == "full":  # FSDP(checkpoint(block)): recomputation gathers nothing twice
        for blocks in block_lists(model, paths):
            for i in range(len(blocks)):
                blocks[i] = checkpoint_wrapper(blocks[i])
    parameters = sum(p.numel() for p in model.parameters())
    every_block = [block for blocks in block_lists(model, paths) for block in blocks]
    if s.order:
        s.live.order, s.live.is_ddp = Order(), s.runtime == "ddp"
        s.live.order.watch(inner_blocks, s.live)
        s.live.order.names |= {block: f"u{i}" for i, block in enumerate(every_block)}
    return config, parameters, WRAPPERS[s.runtime](model, every_block, mesh, s)


def micro_batch(net, inputs, s, live, last):
    live.phase = "forward"
    if s.runtime == "fsdp2":
        net.set_requires_gradient_sync(last or not s.no_sync)
        net.set_is_last_backward(last)
    with net.no_sync() if s.runtime != "fsdp2" and s.no_sync and not last else contextlib.nullcontext():
        loss = net(**inputs).loss
        gc.collect()
        after_forward, live.phase = live.now, "backward"
        loss.backward()
    return after_forward


def clip(net, s):
    if s.clip and s.runtime == "fsdp1":
        net.clip_grad_norm_(1.0)
    elif s.clip:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)


def mesh_of(s):
    if s.runtime == "ddp":
        return None
    if s.replicas > 1:
        return init_device_mesh("cpu", (s.replicas, s.world_size), mesh_dim_names=("replicate", "shard"))
    return init_device_mesh("cpu", (s.world_size,))


def measure(s):
    """Returns (parameters, initial bytes, one dict per step); step 1 has no optimizer state before its update, step 3 is steady."""
    if s.runtime == "ddp":  # its memory does not depend on the number of ranks, and a fake group gives it no result
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    else:
        dist.init_process_group("fake", rank=0, world_size=s.world_size * s.replicas, store=FakeStore())
    live = s.live = LiveBytes(s.trace)
    try:
        mesh = mesh_of(s)
        with contextlib.nullcontext() if s.real else FakeTensorMode(allow_non_fake_inputs=True):
            config, parameters, net = prepared(s, mesh)
            update, inputs = optimizer(net.parameters(), s.optimizer), inputs_of(config, s.local_batch, s.seq_len)
            for tensor in [*net.parameters(), *net.buffers(), *inputs.values()]:
                live.track(tensor)
            initial, result = live.now, []
            with live:
                for step in range(s.step):
                    gc.collect()
                    live.peak = live.now
                    if s.trace:
                        print("step", step + 1)
                    words = live.order.words if s.order else []
                    words.clear()
                    for k in range(s.micro_batches):
                        words.append(f"|micro{k}")
                        after_forward = micro_batch(net, inputs, s, live, k == s.micro_batches - 1)
                    live.phase = "update"
                    clip(net, s)
                    update.step()
                    update.zero_grad(set_to_none=not s.keep_gradients)
                    ordered = dict(order=" ".join([*words, "|step"])) if s.order else {}
                    result.append(ordered | dict(peak_bytes=live.peak, peak_in=live.peak_in, after_forward_bytes=after_forward, after_step_bytes=live.now))
            return parameters, initial, result
    finally:
        for undo in s.live.order.undo if s.live.order else ():
            undo()
        dist.destroy_process_group()


def arguments():
    cli = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    cli.add_argument("model", nargs="?")
    for name in ("world_size", "local_batch", "seq_len"):
        cli.add_argument(name, nargs="?", type=int)
    for name, choices in dict(runtime=["fsdp2", "fsdp1", "ddp"], precision=["bf16", "fp32", "fp16"], reduce=["fp32", "bf16", "fp16"], weights=["fp32", "bf16"],
                              strategy=["full_shard", "shard_grad_op"], recompute=["none", "full"],
                              optimizer=["foreach", "forloop", "fused", "sgd-foreach", "sgd-forloop", "sgd-fused", "sgd-momentum-foreach", "sgd-momentum-forloop"],
                              backward_prefetch=list(PREFETCH), wrap=["block", "root", "blocks:2", "blocks:3"], attention=["sdpa", "eager"]).items():
        cli.add_argument(f"--{name.replace('_', '-')}", default=choices[0], choices=choices)
    for name, default in dict(depth=0, micro_batches=1, replicas=1, reshard_to=0, step=3, bucket_cap_mb=0, lora_rank=0).items():
        cli.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    cli.add_argument("--dropout", type=float, default=0.0)
    cli.add_argument("--lora-targets", default="q+v", help="of q k v o gate up down, joined by +")
    for name in ("real", "forward-prefetch", "no-sync", "clip", "trace", "bucket-view", "keep-gradients", "peft", "order"):
        cli.add_argument(f"--{name}", action="store_true")
    cli.add_argument("--table")
    return cli


SHAPE = ["model", "world_size", "local_batch", "seq_len"]
MEASURED = ["parameters", "initial_bytes", "peak_bytes", "peak_in", "after_forward_bytes", "after_step_bytes"]
ORDER = "order"  # measured where a table has that column


def settings_of_row(cli, row):
    words = [row[name] for name in SHAPE]
    for name, value in row.items():
        flag = f"--{name.replace('_', '-')}"
        if name in (*MEASURED, *SHAPE, ORDER) or value in ("", "False"):
            continue
        words += [flag] if value == "True" else [flag, value]
    return cli.parse_args(words + (["--order"] if ORDER in row else []))


def measure_table(cli, path):
    rows = list(csv.DictReader(open(path)))
    measured = MEASURED + ([ORDER] if ORDER in rows[0] else [])
    columns = [name for name in rows[0] if name not in measured] + measured
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        for row in rows:
            parameters, initial, steps = measure(settings_of_row(cli, row))
            table.writerow(row | dict(parameters=parameters, initial_bytes=initial) | steps[-1])
            file.flush()


def main():
    warnings.filterwarnings("ignore")
    cli = arguments()
    given = cli.parse_args()
    if given.table:
        return measure_table(cli, given.table)
    parameters, initial, steps = measure(given)
    print(json.dumps(dict(parameters=parameters, initial_bytes=initial, steps=steps), indent=1))


if __name__ == "__main__":
    sys.exit(main())
