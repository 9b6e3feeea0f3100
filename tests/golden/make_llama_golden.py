#!/usr/bin/env python3
"""Writes llama_tiny.json: loss curves of tiny Llama, Mistral and Qwen2 models of Hugging Face trained by PyTorch, for Foreshard to repeat.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy transformers
    /tmp/venv/bin/python tests/golden/make_llama_golden.py        # rewrites tests/golden/llama_tiny.json

Modules are those of transformers, with Foreshard's initial values. They compute norms and angles in float32 whatever the model's type, so
`losses` come from modules that do the same in float64, and `stock_losses` from unchanged ones in float32. Data, optimizer, clipping
and the form of the file are those of make_gpt_golden.py.
"""
import pathlib
import platform

import torch
import transformers
from make_gpt_golden import NORM_EPSILON, initial_value, make_optimizer, step_data, write_golden
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.qwen2 import modeling_qwen2


def norm_in_own_type(self, x):
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def rotary_in_double(self, x, position_ids, *_, **__):
    width, base = self.config.head_dim, self.config.rope_parameters["rope_theta"]
    frequencies = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = position_ids[..., None].double() * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


class InDouble:
    """While entered, norms and angles are computed in float64."""

    PATCHES = [(getattr(module, name + part), function)
               for module, name in ((modeling_llama, "Llama"), (modeling_mistral, "Mistral"), (modeling_qwen2, "Qwen2"))
               for part, function in (("RMSNorm", norm_in_own_type), ("RotaryEmbedding", rotary_in_double))]

    def __enter__(self):
        self.kept = [cls.forward for cls, _ in self.PATCHES]
        for cls, function in self.PATCHES:
            cls.forward = function

    def __exit__(self, *_):
        for (cls, _), forward in zip(self.PATCHES, self.kept):
            cls.forward = forward


def hugging_face_model(case: dict) -> torch.nn.Module:
    c = case["config"]
    settings = {
        "num_hidden_layers": c["layers"], "hidden_size": c["width"], "intermediate_size": c["ffn_width"], "vocab_size": c["vocab_size"],
        "num_attention_heads": c["heads"], "num_key_value_heads": c["kv_heads"], "max_position_embeddings": c["max_seq_len"],
        "head_dim": c.get("head_width", c["width"] // c["heads"]), "rms_norm_eps": c["norm_epsilon"],
        "tie_word_embeddings": c.get("tied_head", False), "rope_parameters": {"rope_type": "default", "rope_theta": c["rope_theta"]},
        "attn_implementation": "sdpa", "use_cache": False}
    match case["class"]:
        case "LlamaForCausalLM":
            config = transformers.LlamaConfig(attention_bias=c.get("output_bias", False), mlp_bias=c.get("ffn_bias", False), **settings)
        case "MistralForCausalLM":
            config = transformers.MistralConfig(sliding_window=c.get("window"), **settings)
        case "Qwen2ForCausalLM":
            config = transformers.Qwen2Config(use_sliding_window="window" in c, sliding_window=c.get("window"),
                                              max_window_layers=c.get("full_layers", 0), **settings)
    return getattr(transformers, case["class"])(config)


def parameters_of(model: torch.nn.Module, case: dict) -> dict[str, torch.nn.Parameter]:
    """By Foreshard's names, and with its initial values."""
    params = {name.removeprefix(model.base_model_prefix + "."): p for name, p in model.named_parameters()}
    for name, p in params.items():
        p.data.copy_(initial_value(name, tuple(p.shape), case["config"], case["seed"]))
    return params


def train(case: dict, model: torch.nn.Module) -> dict:
    params = parameters_of(model, case)
    stepper = make_optimizer(params, case["optimizer"])
    data, losses, norms = [], [], []
    for step, learning_rate in enumerate(case["learning_rates"]):
        tokens, targets = step_data(case, step)
        valid, loss = int((targets >= 0).sum()), 0.0
        for micro_tokens, micro_targets in zip(tokens, targets):
            logits = model(input_ids=micro_tokens).logits
            part = torch.nn.functional.cross_entropy(logits.flatten(0, 1), micro_targets.flatten(), ignore_index=-1,
                                                     reduction="sum") / valid
            part.backward()
            loss += part.item()
        losses.append(loss)
        norms.append(torch.nn.utils.clip_grad_norm_(params.values(), case["optimizer"]["max_norm"]).item())
        data.append({"tokens": tokens.flatten().tolist(), "targets": targets.flatten().tolist(), "valid": valid})
        for group in stepper.param_groups:
            group["lr"] = learning_rate * group["lr_scale"]
        stepper.step()
        stepper.zero_grad()
    sums = {name: (p.detach().double() ** 2).sum().item() for name, p in params.items()}
    return {"losses": losses, "gradient_norms": norms, "final_sums_of_squares": sums, "steps": data}


def run(case: dict) -> dict:
    with InDouble():
        result = train(case, hugging_face_model(case).double().train())
    return case | result | {"stock_losses": train(case, hugging_face_model(case).float().train())["losses"]}


CONFIG = {"layers": 2, "width": 24, "heads": 4, "kv_heads": 2, "ffn_width": 40, "vocab_size": 61, "max_seq_len": 16,
          "norm_epsilon": NORM_EPSILON, "rope_theta": 10000.0}
OPTIMIZER = {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "max_norm": 1.0}
BASE = {"optimizer": OPTIMIZER, "seed": 1234, "batch": 3, "seq": 13, "micro_batches": 1, "ignored_targets": False,
        "learning_rates": [1e-2] * 12}
CASES = [
    {"name": "llama", "class": "LlamaForCausalLM", "config": CONFIG} | BASE,
    {"name": "llama_biases", "class": "LlamaForCausalLM",
     "config": CONFIG | {"kv_heads": 4, "qkv_bias": True, "output_bias": True, "ffn_bias": True}} | BASE | {"seed": 7},
    {"name": "mistral", "class": "MistralForCausalLM", "config": CONFIG | {"heads": 3, "kv_heads": 1, "head_width": 10}} | BASE
    | {"batch": 2, "micro_batches": 2, "ignored_targets": True},
    {"name": "qwen2", "class": "Qwen2ForCausalLM",
     "config": CONFIG | {"width": 28, "heads": 7, "kv_heads": 1, "tied_head": True, "qkv_bias": True, "rope_theta": 1e6}} | BASE,
    {"name": "mistral_window", "class": "MistralForCausalLM", "config": CONFIG | {"window": 5}} | BASE,
    {"name": "qwen2_window", "class": "Qwen2ForCausalLM",
     "config": CONFIG | {"layers": 3, "qkv_bias": True, "window": 4, "full_layers": 1}} | BASE | {"seed": 99, "micro_batches": 2},
]


def main() -> None:
    torch.set_num_threads(1)
    made_by = (f"tests/golden/make_llama_golden.py, torch {torch.__version__}, transformers {transformers.__version__}, "
               f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}")
    write_golden(pathlib.Path(__file__).with_name("llama_tiny.json"), made_by, [run(case) for case in CASES])


if __name__ == "__main__":
    main()
