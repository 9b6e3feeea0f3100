#!/usr/bin/env python3
"""Writes vit_tiny.json: loss curves of tiny ViT models of Hugging Face trained by PyTorch, for Foreshard to repeat.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy transformers
    /tmp/venv/bin/python tests/golden/make_vit_golden.py          # rewrites tests/golden/vit_tiny.json

As make_llama_golden.py. Image n of a step s has bytes (7·i² + 3·i + 31·n + 5·s) mod 256, i counting its values in the order of patches
(patch, channel, row, column), and class (3·n + s) mod classes; a byte b is b/127.5 - 1, rounded to float32.
"""
import math
import pathlib
import platform
import struct

import torch
import transformers
from make_gpt_golden import make_optimizer, normal, parameter_key, write_golden
from make_llama_golden import BASE

NORM_EPSILON = struct.unpack("f", struct.pack("f", 1e-12))[0]


def hugging_face_model(case: dict) -> torch.nn.Module:
    c = case["config"]
    config = transformers.ViTConfig(
        num_hidden_layers=c["layers"], hidden_size=c["width"], num_attention_heads=c["heads"], intermediate_size=c["ffn_width"],
        image_size=c["image_size"], patch_size=c["patch_size"], num_channels=c["channels"], num_labels=c["classes"],
        hidden_act=c["activation"], qkv_bias=c["qkv_bias"], layer_norm_eps=NORM_EPSILON, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="sdpa")
    return transformers.ViTForImageClassification(config)


def initial_value(name: str, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    if len(shape) == 1:
        return torch.full(shape, 1.0 if "norm" in name and name.endswith("weight") else 0.0, dtype=torch.float64)
    key, deviation = parameter_key(seed, name), 1.0 if name.endswith("reattn_weights") else 0.02
    return torch.tensor([deviation * normal(key, i) for i in range(math.prod(shape))], dtype=torch.float64).reshape(shape)


def step_images(case: dict, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images as [n, channels, height, width], and their classes."""
    c, count = case["config"], case["batch"] * case["micro_batches"]
    side, across = c["patch_size"], c["image_size"] // c["patch_size"]
    index = torch.arange(c["channels"] * c["image_size"] ** 2)
    values = torch.stack([(7 * index * index + 3 * index + 31 * n + 5 * step) % 256 for n in range(count)])
    patches = (values.float() / 127.5 - 1).reshape(count, across, across, c["channels"], side, side)
    labels = torch.tensor([(3 * n + step) % c["classes"] for n in range(count)])
    return patches.permute(0, 3, 1, 4, 2, 5).reshape(count, c["channels"], c["image_size"], c["image_size"]), labels


def train(case: dict, model: torch.nn.Module) -> dict:
    params = {name.removeprefix("vit."): p for name, p in model.named_parameters()}
    for name, p in params.items():
        p.data.copy_(initial_value(name, tuple(p.shape), case["seed"]))
    stepper = make_optimizer(params, case["optimizer"])
    losses, norms = [], []
    for step, learning_rate in enumerate(case["learning_rates"]):
        images, labels = step_images(case, step)
        logits = model(pixel_values=images.to(model.dtype)).logits
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(params.values(), case["optimizer"]["max_norm"]).item())
        for group in stepper.param_groups:
            group["lr"] = learning_rate * group["lr_scale"]
        stepper.step()
        stepper.zero_grad()
    return {"losses": losses, "gradient_norms": norms,
            "final_sums_of_squares": {name: (p.detach().double() ** 2).sum().item() for name, p in params.items()}}


def run(case: dict) -> dict:
    return case | train(case, hugging_face_model(case).double().train()) | {
        "stock_losses": train(case, hugging_face_model(case).float().train())["losses"]}


CONFIG = {"layers": 2, "width": 24, "heads": 4, "ffn_width": 40, "image_size": 12, "patch_size": 4, "channels": 3, "classes": 5,
          "activation": "gelu", "qkv_bias": True}
VIT = BASE | {"learning_rates": [1e-2] * 8}
CASES = [
    {"name": "vit", "config": CONFIG} | VIT,
    {"name": "vit_odd", "config": CONFIG | {"width": 21, "heads": 3, "image_size": 9, "patch_size": 3, "channels": 1, "classes": 4,
                                            "activation": "gelu_new", "qkv_bias": False}} | VIT
    | {"batch": 2, "micro_batches": 2, "seed": 5},
]


def main() -> None:
    torch.set_num_threads(1)
    made_by = (f"tests/golden/make_vit_golden.py, torch {torch.__version__}, transformers {transformers.__version__}, "
               f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}")
    write_golden(pathlib.Path(__file__).with_name("vit_tiny.json"), made_by, [run(case) for case in CASES])


if __name__ == "__main__":
    main()
