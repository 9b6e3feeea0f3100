#!/usr/bin/env python3
"""Writes deepvit_tiny.json: loss curves of tiny DeepViT models trained by PyTorch, for Foreshard to repeat.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy transformers
    /tmp/venv/bin/python tests/golden/make_deepvit_golden.py      # rewrites tests/golden/deepvit_tiny.json

As make_vit_golden.py, with re-attention (Zhou et al. 2021, arXiv 2103.11886) in place of the attention of Hugging Face's ViT, computed
as vit_pytorch.deepvit does: probabilities mixed over heads by an einsum, then torch's LayerNorm over heads. "parameters" counts the
module's.
"""
import pathlib
import platform

import torch
import transformers
from make_gpt_golden import NORM_EPSILON, write_golden
from make_vit_golden import CONFIG, VIT, hugging_face_model, train


class ReAttention(torch.nn.Module):
    def __init__(self, attention: torch.nn.Module):
        super().__init__()
        self.heads = attention.num_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj
        self.reattn_weights = torch.nn.Parameter(torch.randn(self.heads, self.heads))
        self.reattn_norm = torch.nn.LayerNorm(self.heads, eps=NORM_EPSILON)

    def forward(self, x: torch.Tensor, *_, **__) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        probabilities = (torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5).softmax(dim=-1)
        mixed = torch.einsum("bhij,hg->bgij", probabilities, self.reattn_weights)
        weights = self.reattn_norm(mixed.movedim(1, -1)).movedim(-1, 1)
        y = torch.einsum("bhij,bhjd->bhid", weights, v)
        return self.o_proj(y.transpose(1, 2).flatten(2)), weights


def deepvit(case: dict) -> torch.nn.Module:
    model = hugging_face_model(case)
    for layer in model.vit.layers:
        layer.attention = ReAttention(layer.attention)
    return model


def run(case: dict) -> dict:
    model = deepvit(case).double().train()
    return case | train(case, model) | {"parameters": sum(p.numel() for p in model.parameters()),
                                        "stock_losses": train(case, deepvit(case).float().train())["losses"]}


CONFIG = CONFIG | {"reattention": True}
CASES = [
    {"name": "deepvit", "config": CONFIG} | VIT,
    {"name": "deepvit_odd", "config": CONFIG | {"layers": 3, "width": 21, "heads": 3, "image_size": 9, "patch_size": 3, "channels": 1,
                                                "classes": 4, "activation": "gelu_new", "qkv_bias": False}} | VIT
    | {"batch": 2, "micro_batches": 2, "seed": 5},
]


def main() -> None:
    torch.set_num_threads(1)
    made_by = (f"tests/golden/make_deepvit_golden.py, torch {torch.__version__}, transformers {transformers.__version__}, "
               f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}")
    write_golden(pathlib.Path(__file__).with_name("deepvit_tiny.json"), made_by, [run(case) for case in CASES])


if __name__ == "__main__":
    main()
