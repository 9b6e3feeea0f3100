#!/usr/bin/env python3
"""Writes gpt_tiny.json: loss curves of tiny GPT-2 models trained by PyTorch in float64, for Foreshard to repeat.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy
    /tmp/venv/bin/python tests/golden/make_gpt_golden.py          # rewrites tests/golden/gpt_tiny.json

The model is GPT-2 (pre-LayerNorm, eps fp32(1e-5), GELU in its tanh form, learned positions, biases, no dropout) written here with
plain torch operators, under Hugging Face's parameter names with weights stored [out, in]. Initial values are Foreshard's own
(counter-based, so that C++ repeats them exactly). The optimizers are torch.optim's, and Lion as its paper writes it, with decay on
tensors of two and more dimensions only where no group says otherwise, after torch's clip_grad_norm_ and, where a case has a
clip_value, clip_grad_value_. The loss is the mean over the valid targets of all micro-batches of a step.
"""
import fnmatch
import json
import math
import pathlib
import platform
import struct

import torch

MASK64 = (1 << 64) - 1
# Foreshard keeps the epsilon of a norm in fp32, also where it computes in double.
NORM_EPSILON = struct.unpack("f", struct.pack("f", 1e-5))[0]


def fnv1a(data: bytes, state: int = 0xCBF29CE484222325) -> int:
    for byte in data:
        state = ((state ^ byte) * 0x100000001B3) & MASK64
    return state


def parameter_key(seed: int, name: str) -> int:
    """Foreshard's Hash().add(uint64 seed).add(name): integers as 8 bytes little-endian, a text as its bytes, then its size."""
    text = name.encode()
    return fnv1a(seed.to_bytes(8, "little") + text + len(text).to_bytes(8, "little"))


def philox(key: int, high: int, low: int) -> list[int]:
    """Philox4x32-10 (Salmon et al., SC 2011), words as src/base/random.hpp orders them."""
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    c = [low & 0xFFFFFFFF, low >> 32, high & 0xFFFFFFFF, high >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def normal(key: int, index: int) -> float:
    """Box-Muller. Python's math calls the C library, as the C++ does; numpy's vectorised functions differ in last bits."""
    words = philox(key, 0, index // 2)
    radius = math.sqrt(-2.0 * math.log((words[0] + 0.5) * 2.0**-32))
    angle = 2.0 * math.pi * ((words[1] + 0.5) * 2.0**-32)
    return radius * (math.cos(angle) if index % 2 == 0 else math.sin(angle))


def parameter_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    width = config["width"]
    shapes = {"wte.weight": (config["vocab_size"], width), "wpe.weight": (config["max_seq_len"], width)}
    for i in range(config["layers"]):
        block = f"h.{i}."
        shapes |= {block + "ln_1.weight": (width,), block + "ln_1.bias": (width,)}
        shapes |= {block + "attn.c_attn.weight": (3 * width, width), block + "attn.c_attn.bias": (3 * width,)}
        shapes |= {block + "attn.c_proj.weight": (width, width), block + "attn.c_proj.bias": (width,)}
        shapes |= {block + "ln_2.weight": (width,), block + "ln_2.bias": (width,)}
        shapes |= {block + "mlp.c_fc.weight": (4 * width, width), block + "mlp.c_fc.bias": (4 * width,)}
        shapes |= {block + "mlp.c_proj.weight": (width, 4 * width), block + "mlp.c_proj.bias": (width,)}
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    if not config["tied_head"]:
        shapes["lm_head.weight"] = (config["vocab_size"], width)
    return shapes


def initial_value(name: str, shape: tuple[int, ...], config: dict, seed: int) -> torch.Tensor:
    if len(shape) == 1:
        return torch.full(shape, 1.0 if name.endswith("weight") else 0.0, dtype=torch.float64)
    stddev = 0.02 / math.sqrt(2.0 * config["layers"]) if name.endswith("c_proj.weight") else 0.02
    key = parameter_key(seed, name)
    values = [stddev * normal(key, i) for i in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def forward(p: dict[str, torch.Tensor], tokens: torch.Tensor, config: dict, skipped: list[int] = []) -> torch.Tensor:
    """Logits [batch, seq, vocab]. Blocks of `skipped` are left out."""
    f = torch.nn.functional
    batch, seq = tokens.shape
    width, heads = config["width"], config["heads"]

    def norm(x, name):
        return f.layer_norm(x, (width,), p[name + ".weight"], p[name + ".bias"], eps=NORM_EPSILON)

    def linear(x, name):
        return f.linear(x, p[name + ".weight"], p[name + ".bias"])

    x = p["wte.weight"][tokens] + p["wpe.weight"][:seq]
    hidden_future = torch.ones(seq, seq).triu(1).bool()
    for i in range(config["layers"]):
        if i in skipped:
            continue
        block = f"h.{i}."
        qkv = linear(norm(x, block + "ln_1"), block + "attn.c_attn")
        q, k, v = (t.reshape(batch, seq, heads, width // heads).transpose(1, 2) for t in qkv.split(width, dim=-1))
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(width // heads)
        y = scores.masked_fill(hidden_future, -math.inf).softmax(dim=-1) @ v
        x = x + linear(y.transpose(1, 2).reshape(batch, seq, width), block + "attn.c_proj")
        hidden = f.gelu(linear(norm(x, block + "ln_2"), block + "mlp.c_fc"), approximate="tanh")
        x = x + linear(hidden, block + "mlp.c_proj")
    head = p["wte.weight"] if config["tied_head"] else p["lm_head.weight"]
    return norm(x, "ln_f") @ head.T


def step_data(case: dict, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and targets of one step, each [micro-batches, batch, seq]; sequence n of a step begins at token n·seq of it."""
    micro_batches, batch, seq, vocab = case["micro_batches"], case["batch"], case["seq"], case["config"]["vocab_size"]
    count = micro_batches * batch * seq
    text = torch.tensor([(i * i * 7 + 3 * i) % vocab for i in range(step * count, (step + 1) * count + 1)])
    tokens, targets = text[:-1].clone(), text[1:].clone()
    if case["ignored_targets"]:
        index = torch.arange(count)
        # Unevenly over the micro-batches, so that a mean of means is wrong.
        ignored = ((index + step) % 7 == 0) | ((index < batch * seq) & (index % 3 == 1))
        targets[ignored] = -1
    return tokens.reshape(micro_batches, batch, seq), targets.reshape(micro_batches, batch, seq)


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023 (arXiv 2302.06675): c = b1 m + (1 - b1) g, p -= lr (sign(c) + decay p), m = b2 m + (1 - b2) g."""

    def __init__(self, groups, lr, betas):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = (beta1 * m + (1 - beta1) * p.grad).sign() + group["weight_decay"] * p
                p.sub_(group["lr"] * update)
                m.mul_(beta2).add_((1 - beta2) * p.grad)


def parameter_groups(params: dict, optimizer: dict) -> list[dict]:
    """One torch group a parameter: what the first of the case's groups that matches says, else decay by dimensions."""
    groups = []
    for name, p in params.items():
        rule = next((g for g in optimizer.get("groups", []) if fnmatch.fnmatchcase(name, g["pattern"])), {})
        decay = optimizer["weight_decay"] if p.dim() >= 2 else 0.0
        groups.append({"params": [p], "lr_scale": rule.get("lr_scale", 1.0), "weight_decay": rule.get("weight_decay", decay)})
    return groups


def make_optimizer(params: dict, o: dict) -> torch.optim.Optimizer:
    groups, betas = parameter_groups(params, o), (o["beta1"], o["beta2"])
    match o.get("name", "adamw"):
        case "adamw":
            return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=o["eps"])
        case "adam":
            return torch.optim.Adam(groups, lr=0.0, betas=betas, eps=o["eps"])
        case "sgd":
            return torch.optim.SGD(groups, lr=0.0, momentum=o.get("momentum", 0.0), nesterov=o.get("nesterov", False))
        case "lion":
            return Lion(groups, lr=0.0, betas=betas)


def autocast_losses(case: dict) -> list[float]:
    """The same training of float32 parameters, computed in bf16 where torch.autocast says so."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return run(case | {"autocast": False}, torch.float32)["losses"]


def run(case: dict, dtype: torch.dtype = torch.float64) -> dict:
    config, optimizer = case["config"], case["optimizer"]
    params = {n: initial_value(n, s, config, case["seed"]).to(dtype).requires_grad_() for n, s in parameter_shapes(config).items()}
    initial_sums = {n: (p.detach() ** 2).sum().item() for n, p in params.items()}
    stepper = make_optimizer(params, optimizer)
    data, losses, norms = [], [], []
    for step, learning_rate in enumerate(case["learning_rates"]):
        tokens, targets = step_data(case, step)
        valid = int((targets >= 0).sum())
        loss = 0.0
        partial = case.get("partial", {"skip": [], "every": 1, "frozen": [], "frozen_steps": 0})
        skipped = partial["skip"] if (step + 1) % partial["every"] == 0 else []
        for name, p in params.items():
            p.requires_grad_(step >= partial["frozen_steps"] or not any(fnmatch.fnmatchcase(name, g) for g in partial["frozen"]))
        for micro_tokens, micro_targets in zip(tokens, targets):
            logits = forward(params, micro_tokens, config, skipped)
            part = torch.nn.functional.cross_entropy(logits.flatten(0, 1), micro_targets.flatten(), ignore_index=-1,
                                                     reduction="sum") / valid
            part.backward()
            loss += part.item()
        norm_type = float(optimizer.get("norm_type", "2"))
        norms.append(torch.nn.utils.clip_grad_norm_(params.values(), optimizer["max_norm"], norm_type).item())
        if optimizer.get("clip_value", 0) > 0:
            torch.nn.utils.clip_grad_value_(params.values(), optimizer["clip_value"])
        losses.append(loss)
        data.append({"tokens": tokens.flatten().tolist(), "targets": targets.flatten().tolist(), "valid": valid})
        for group in stepper.param_groups:
            group["lr"] = learning_rate * group["lr_scale"]
        stepper.step()
        stepper.zero_grad()
    result = case | {
        "losses": losses,
        "gradient_norms": norms,
        "final_sums_of_squares": {n: (p.detach() ** 2).sum().item() for n, p in params.items()},
        "steps": data,
    }
    if case.get("autocast"):
        result["autocast_losses"] = autocast_losses(case)
    return result if case.get("brief") else result | {
        "initial_sums_of_squares": initial_sums,
        "initial_first_values": {n: p.flatten()[:3].tolist() for n, p in
                                 ((n, initial_value(n, s, config, case["seed"])) for n, s in parameter_shapes(config).items())},
        "final_values": {n: p.detach().flatten().tolist() for n, p in params.items() if p.numel() <= 24 or n == "wpe.weight"},
    }


CONFIG = {"layers": 2, "width": 24, "heads": 3, "vocab_size": 61, "max_seq_len": 16, "tied_head": True}
OPTIMIZER = {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "max_norm": 1.0}
BASE = {"config": CONFIG, "optimizer": OPTIMIZER, "seed": 1234, "batch": 3, "seq": 13, "micro_batches": 1,
        "ignored_targets": False, "learning_rates": [1e-2] * 20}


def optimizer_case(case_name: str, learning_rate: float, **optimizer) -> dict:
    return {"name": case_name} | BASE | {"optimizer": OPTIMIZER | optimizer, "learning_rates": [learning_rate] * 8, "brief": True}


CASES = [
    {"name": "tied"} | BASE,
    {"name": "ignored_targets"} | BASE | {"batch": 2, "micro_batches": 2, "ignored_targets": True,
                                          "learning_rates": [1e-2 * min(1.0, (i + 1) / 5) for i in range(12)]},
    {"name": "untied"} | BASE | {"config": CONFIG | {"tied_head": False}, "seed": 99, "learning_rates": [1e-2] * 10},
    optimizer_case("adam_norm_1", 1e-2, name="adam", norm_type="1", max_norm=20.0),
    optimizer_case("sgd_norm_inf", 1.0, name="sgd", norm_type="inf", max_norm=0.1),
    optimizer_case("momentum_norm_3", 0.3, name="sgd", momentum=0.9, norm_type="3", max_norm=0.3),
    optimizer_case("nesterov_clip_value", 0.3, name="sgd", momentum=0.8, nesterov=True, max_norm=1e9, clip_value=0.02),
    optimizer_case("lion", 1e-3, name="lion", beta2=0.99),
    optimizer_case("groups", 1e-2, groups=[{"pattern": "*.ln_?.*", "lr_scale": 0.5}, {"pattern": "wpe.*", "weight_decay": 0.0},
                                           {"pattern": "*.bias", "lr_scale": 2.0, "weight_decay": 0.3}]),
    # Parameters without a gradient keep .grad = None, which torch's optimizers leave alone: value, moments and step count.
    optimizer_case("partial", 1e-2) | {"learning_rates": [1e-2] * 12, "micro_batches": 2, "ignored_targets": True,
                                       "partial": {"skip": [1], "every": 3, "frozen": ["h.0.*", "wpe.*"], "frozen_steps": 4}},
    optimizer_case("autocast", 2e-3) | {"autocast": True, "learning_rates": [2e-3] * 24},
]


def write_golden(path: pathlib.Path, made_by: str, cases: list[dict]) -> None:
    """One value a line would be long: one key a line instead."""
    lines = ",\n".join("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in c.items()) + "\n}" for c in cases)
    path.write_text(f'{{"made_by": {json.dumps(made_by)},\n"cases": [\n{lines}\n]}}\n')
    for case in cases:
        print(case["name"], case["losses"][0], "to", case["losses"][-1], "norms", case["gradient_norms"][0], max(case["gradient_norms"]))


def main() -> None:
    torch.set_num_threads(1)
    made_by = f"tests/golden/make_gpt_golden.py, torch {torch.__version__}, {platform.libc_ver()[0]} {platform.libc_ver()[1]}"
    write_golden(pathlib.Path(__file__).with_name("gpt_tiny.json"), made_by, [run(case) for case in CASES])


if __name__ == "__main__":
    main()
