#!/usr/bin/env python3
"""Writes mpt_tiny.json: loss curves of tiny MPT models of Hugging Face trained by PyTorch, for Foreshard to repeat.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy transformers
    /tmp/venv/bin/python tests/golden/make_mpt_golden.py          # rewrites tests/golden/mpt_tiny.json

As make_llama_golden.py. The module's softmax is in float32 whatever the model's type: for `losses` it is in float64.
"""
import contextlib
import pathlib
import platform
from unittest import mock

import torch
import transformers
from make_gpt_golden import NORM_EPSILON, write_golden
from make_llama_golden import BASE, train


def hugging_face_model(case: dict) -> torch.nn.Module:
    c = case["config"]
    config = transformers.MptConfig(
        n_layers=c["layers"], d_model=c["width"], n_heads=c["heads"], vocab_size=c["vocab_size"], max_seq_len=c["max_seq_len"],
        layer_norm_epsilon=NORM_EPSILON, tie_word_embeddings=c["tied_head"], use_cache=False)
    return transformers.MptForCausalLM(config)


def float_is_double() -> contextlib.AbstractContextManager:
    return mock.patch.object(torch.Tensor, "float", torch.Tensor.double)


def run(case: dict) -> dict:
    with float_is_double():
        result = train(case, hugging_face_model(case).double().train())
    return case | result | {"stock_losses": train(case, hugging_face_model(case).train())["losses"]}


CONFIG = {"layers": 2, "width": 24, "heads": 3, "vocab_size": 61, "max_seq_len": 16, "tied_head": True}
CASES = [
    {"name": "mpt", "config": CONFIG} | BASE,
    {"name": "mpt_untied", "config": CONFIG | {"heads": 4, "tied_head": False}} | BASE
    | {"batch": 2, "micro_batches": 2, "ignored_targets": True, "seed": 5},
]


def main() -> None:
    torch.set_num_threads(1)
    made_by = (f"tests/golden/make_mpt_golden.py, torch {torch.__version__}, transformers {transformers.__version__}, "
               f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}")
    write_golden(pathlib.Path(__file__).with_name("mpt_tiny.json"), made_by, [run(case) for case in CASES])


if __name__ == "__main__":
    main()
