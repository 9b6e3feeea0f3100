#!/usr/bin/env python3
"""Writes t5_tiny.json: loss curves of tiny T5 models of Hugging Face trained by PyTorch, for Foreshard to repeat.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy transformers
    /tmp/venv/bin/python tests/golden/make_t5_golden.py           # rewrites tests/golden/t5_tiny.json

As make_llama_golden.py. The encoder reads a step's tokens; its targets are the labels, which the module shifts by one for the decoder.
Norms are in float32 whatever the module's type: for `losses` they are in float64. Buckets of positions are always computed in float32.
"""
import math
import pathlib
import platform
import struct
from unittest import mock

import torch
import transformers
from make_gpt_golden import make_optimizer, normal, parameter_key, step_data, write_golden
from make_llama_golden import BASE, norm_in_own_type
from transformers.models.t5 import modeling_t5

NORM_EPSILON = struct.unpack("f", struct.pack("f", 1e-6))[0]


def hugging_face_model(case: dict) -> torch.nn.Module:
    c = case["config"]
    config = transformers.T5Config(
        vocab_size=c["vocab_size"], d_model=c["width"], d_kv=c["head_width"], d_ff=c["ffn_width"], num_layers=c["layers"],
        num_decoder_layers=c["decoder_layers"], num_heads=c["heads"], relative_attention_num_buckets=c["buckets"],
        relative_attention_max_distance=c["max_distance"], dropout_rate=0.0, layer_norm_epsilon=NORM_EPSILON,
        feed_forward_proj=c["feed_forward"], tie_word_embeddings=c["tied_head"], decoder_start_token_id=0, pad_token_id=0,
        use_cache=False, attn_implementation="sdpa")
    config.tie_word_embeddings = c["tied_head"]  # which transformers 5 sets for all, while weights of T5 1.1 have a head of their own
    model = transformers.T5ForConditionalGeneration(config)
    model.set_input_embeddings(model.shared)  # of encoder and decoder, whether the head is tied or not
    return model


def inverse_variance(name: str, shape: tuple[int, ...], config: dict) -> int:
    """As T5PreTrainedModel._init_weights."""
    if name in ("shared.weight", "lm_head.weight"):
        return 1
    if name.endswith("relative_attention_bias.weight"):
        return config["width"]
    return shape[1] * (config["head_width"] if name.endswith(".q.weight") else 1)


def initial_value(name: str, shape: tuple[int, ...], config: dict, seed: int) -> torch.Tensor:
    if len(shape) == 1:
        return torch.ones(shape, dtype=torch.float64)
    key, stddev = parameter_key(seed, name), 1 / math.sqrt(inverse_variance(name, shape, config))
    return torch.tensor([stddev * normal(key, i) for i in range(math.prod(shape))], dtype=torch.float64).reshape(shape)


def train(case: dict, model: torch.nn.Module) -> dict:
    params = dict(model.named_parameters())
    for name, p in params.items():
        p.data.copy_(initial_value(name, tuple(p.shape), case["config"], case["seed"]))
    stepper = make_optimizer(params, case["optimizer"])
    data, losses, norms = [], [], []
    for step, learning_rate in enumerate(case["learning_rates"]):
        tokens, targets = step_data(case, step)
        valid, loss = int((targets >= 0).sum()), 0.0
        for micro_tokens, micro_targets in zip(tokens, targets):
            labels = micro_targets.masked_fill(micro_targets < 0, -100)
            logits = model(input_ids=micro_tokens, labels=labels).logits
            part = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / valid
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


def norms_in_double() -> mock._patch:
    return mock.patch.object(modeling_t5.T5LayerNorm, "forward", norm_in_own_type)


def run(case: dict) -> dict:
    with norms_in_double():
        result = train(case, hugging_face_model(case).double().train())
    return case | result | {"stock_losses": train(case, hugging_face_model(case).float().train())["losses"]}


CONFIG = {"layers": 2, "decoder_layers": 2, "width": 20, "heads": 3, "head_width": 6, "ffn_width": 40, "vocab_size": 61, "buckets": 8,
          "max_distance": 10, "tied_head": True, "feed_forward": "relu"}
CASES = [
    {"name": "t5", "config": CONFIG} | BASE,
    {"name": "t5_1_1", "config": CONFIG | {"tied_head": False, "feed_forward": "gated-gelu", "decoder_layers": 3, "heads": 4}} | BASE
    | {"batch": 2, "micro_batches": 2, "ignored_targets": True, "seed": 5},
    {"name": "gated_silu", "config": CONFIG | {"feed_forward": "gated-silu", "layers": 3, "decoder_layers": 1, "buckets": 32,
                                               "max_distance": 128}} | BASE | {"seed": 7},
]


def main() -> None:
    torch.set_num_threads(1)
    made_by = (f"tests/golden/make_t5_golden.py, torch {torch.__version__}, transformers {transformers.__version__}, "
               f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}")
    write_golden(pathlib.Path(__file__).with_name("t5_tiny.json"), made_by, [run(case) for case in CASES])


if __name__ == "__main__":
    main()
