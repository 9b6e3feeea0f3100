#!/usr/bin/env python3
"""Writes weights/: tiny models as Hugging Face saves them, and weights.json: losses that PyTorch computes with them.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch numpy transformers
    /tmp/venv/bin/python tests/golden/make_weights_golden.py

GPT-2 in one file of float32, Llama in several of bfloat16 with an index, MPT in one of float16, T5 and ViT in one of float32. Losses are in
float64, also where the modules compute in float32 (see make_llama_golden.py). ViT's images are those of make_vit_golden.py.
"""
import json
import pathlib
import platform
import shutil

import torch
import transformers
from make_llama_golden import InDouble
from make_mpt_golden import float_is_double
from make_t5_golden import norms_in_double
from make_vit_golden import step_images

FOLDER = pathlib.Path(__file__).with_name("weights")
BATCH, SEQ, VOCAB = 6, 5, 23


def models() -> dict[str, tuple[transformers.PreTrainedModel, torch.dtype, str]]:
    """By name: a model, the type it is saved in, and the largest file."""
    torch.manual_seed(3)
    gpt2 = transformers.GPT2Config(n_layer=2, n_embd=8, n_head=2, n_positions=6, vocab_size=VOCAB, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    llama = transformers.LlamaConfig(num_hidden_layers=2, hidden_size=12, num_attention_heads=2, num_key_value_heads=1,
                                     intermediate_size=20, vocab_size=VOCAB, max_position_embeddings=6)
    mpt = transformers.MptConfig(n_layers=2, d_model=12, n_heads=3, vocab_size=VOCAB, max_seq_len=6)
    return {"gpt2": (transformers.GPT2LMHeadModel(gpt2), torch.float32, "1GB"),
            "llama": (transformers.LlamaForCausalLM(llama), torch.bfloat16, "2KB"),
            "mpt": (transformers.MptForCausalLM(mpt), torch.float16, "1GB")}


def t5() -> transformers.PreTrainedModel:
    torch.manual_seed(4)
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        num_layers=2, d_model=10, d_kv=4, num_heads=2, d_ff=12, vocab_size=VOCAB, dropout_rate=0, decoder_start_token_id=0))


def vit() -> transformers.PreTrainedModel:
    torch.manual_seed(5)
    return transformers.ViTForImageClassification(transformers.ViTConfig(
        num_hidden_layers=2, hidden_size=8, num_attention_heads=2, intermediate_size=12, image_size=8, patch_size=4, num_labels=3,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0))


VIT_IMAGES = {"batch": 6, "micro_batches": 1, "config": {"patch_size": 4, "image_size": 8, "channels": 3, "classes": 3}}


def vit_loss(model: transformers.PreTrainedModel) -> float:
    images, labels = step_images(VIT_IMAGES, 0)
    return torch.nn.functional.cross_entropy(model.double().eval()(pixel_values=images.double()).logits, labels, reduction="sum").item()


def t5_loss(model: transformers.PreTrainedModel, tokens: torch.Tensor, targets: torch.Tensor) -> float:
    with norms_in_double():
        logits = model.double().eval()(input_ids=tokens, labels=targets).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").item()


def save(name: str, model: transformers.PreTrainedModel, largest: str) -> None:
    model.save_pretrained(FOLDER / name, max_shard_size=largest)
    for other in ("config.json", "generation_config.json"):
        (FOLDER / name / other).unlink(missing_ok=True)
    for file in (FOLDER / name).iterdir():
        file.chmod(0o644)


@torch.no_grad()
def scatter_parameters(model: torch.nn.Module) -> None:
    """Far from the initial values, so that every parameter matters."""
    for p in model.parameters():
        p.add_(0.3 * torch.randn(p.shape))


def loss(model: transformers.PreTrainedModel, tokens: torch.Tensor, targets: torch.Tensor) -> float:
    with InDouble(), float_is_double():
        logits = model.double().eval()(input_ids=tokens).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").item()


def main() -> None:
    torch.set_num_threads(1)
    shutil.rmtree(FOLDER, ignore_errors=True)
    text = torch.tensor([(i * i * 7 + 3 * i) % VOCAB for i in range(BATCH * SEQ + 1)])
    tokens, targets = text[:-1].reshape(BATCH, SEQ), text[1:].reshape(BATCH, SEQ)
    losses = {}
    for name, (model, dtype, largest) in models().items():
        scatter_parameters(model)
        model = model.to(dtype)
        save(name, model, largest)
        losses[name] = loss(model, tokens, targets)
    for name, model in {"t5": t5(), "vit": vit()}.items():
        scatter_parameters(model)
        save(name, model, "1GB")
        losses[name] = vit_loss(model) if name == "vit" else t5_loss(model, tokens, targets)
    made_by = (f"tests/golden/make_weights_golden.py, torch {torch.__version__}, transformers {transformers.__version__}, "
               f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}")
    golden = {"made_by": made_by, "batch": BATCH, "seq": SEQ, "tokens": tokens.flatten().tolist(), "targets": targets.flatten().tolist(),
              "loss_sums": losses}
    FOLDER.with_suffix(".json").write_text(json.dumps(golden) + "\n")
    print(losses)


if __name__ == "__main__":
    main()
