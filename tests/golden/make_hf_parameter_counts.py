"""Parameter counts of models that transformers builds from configurations, for hf_parameter_counts.json.

Models are built on the meta device, so no weights are made. Needs torch and transformers (made with torch 2.15 and
transformers 5.24):  python make_hf_parameter_counts.py > hf_parameter_counts.json
Some configurations are those published with weights, the others vary what decides a shape at random.
"""
import json
import random
import sys
import warnings

import torch
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForSeq2SeqLM)

warnings.simplefilter("ignore")

AUTO = {"t5": AutoModelForSeq2SeqLM, "vit": AutoModelForImageClassification}


def parameters(config):
    kind = config["model_type"]
    arguments = dict(config)
    if kind == "vit" and "id2label" in arguments:  # JSON keys are text
        arguments["id2label"] = {int(k): v for k, v in arguments["id2label"].items()}
    with torch.device("meta"):
        model = AUTO.get(kind, AutoModelForCausalLM).from_config(AutoConfig.for_model(**arguments))
    count = sum(p.numel() for p in model.parameters())
    if kind == "t5" and config.get("tie_word_embeddings") is False:
        # transformers 5 ties T5's head whatever the file says; the published weights of T5 1.1 have one of their own.
        count += config["vocab_size"] * config["d_model"]
    return count


def llama(width, layers, heads, kv, ffn, vocab, **more):
    return dict(model_type="llama", hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                num_key_value_heads=kv, intermediate_size=ffn, vocab_size=vocab, **more)


def qwen(width, layers, heads, kv, ffn, vocab, tied):
    return dict(llama(width, layers, heads, kv, ffn, vocab), model_type="qwen2", tie_word_embeddings=tied)


def t5(width, kv, ffn, layers, heads, **more):
    return dict(model_type="t5", d_model=width, d_kv=kv, d_ff=ffn, num_layers=layers, num_heads=heads,
                vocab_size=32128, **more)


PUBLISHED = {
    "gpt2": dict(model_type="gpt2"),
    "gpt2-medium": dict(model_type="gpt2", n_embd=1024, n_layer=24, n_head=16),
    "gpt2-large": dict(model_type="gpt2", n_embd=1280, n_layer=36, n_head=20),
    "gpt2-xl": dict(model_type="gpt2", n_embd=1600, n_layer=48, n_head=25),
    "llama-2-7b": llama(4096, 32, 32, None, 11008, 32000),
    "llama-2-13b": llama(5120, 40, 40, 40, 13824, 32000),
    "llama-2-70b": llama(8192, 80, 64, 8, 28672, 32000),
    "llama-3-8b": llama(4096, 32, 32, 8, 14336, 128256),
    "llama-3-70b": llama(8192, 80, 64, 8, 28672, 128256),
    "llama-3.1-405b": llama(16384, 126, 128, 8, 53248, 128256),
    "llama-3.2-1b": llama(2048, 16, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True),
    "llama-3.2-3b": llama(3072, 28, 24, 8, 8192, 128256, head_dim=128, tie_word_embeddings=True),
    "mistral-7b": dict(model_type="mistral"),
    "mistral-nemo-12b": dict(llama(5120, 40, 32, 8, 14336, 131072, head_dim=128), model_type="mistral"),
    "mistral-large-123b": dict(llama(12288, 88, 96, 8, 28672, 32768), model_type="mistral"),
    "qwen1.5-72b": qwen(8192, 80, 64, 64, 24576, 152064, False),
    "qwen2.5-0.5b": qwen(896, 24, 14, 2, 4864, 151936, True),
    "qwen2.5-1.5b": qwen(1536, 28, 12, 2, 8960, 151936, True),
    "qwen2.5-3b": qwen(2048, 36, 16, 2, 11008, 151936, True),
    "qwen2.5-7b": qwen(3584, 28, 28, 4, 18944, 152064, False),
    "qwen2.5-32b": qwen(5120, 64, 40, 8, 27648, 152064, False),
    "qwen2.5-72b": qwen(8192, 80, 64, 8, 29568, 152064, False),
    "mpt-7b": dict(model_type="mpt", d_model=4096, n_layers=32, n_heads=32, vocab_size=50432),
    "mpt-30b": dict(model_type="mpt", d_model=7168, n_layers=48, n_heads=64, vocab_size=50432, max_seq_len=8192),
    "t5-small": t5(512, 64, 2048, 6, 8),
    "t5-base": t5(768, 64, 3072, 12, 12),
    "t5-large": t5(1024, 64, 4096, 24, 16),
    "t5-3b": t5(1024, 128, 16384, 24, 32),
    "t5-11b": t5(1024, 128, 65536, 24, 128),
    "t5-v1.1-xl": t5(2048, 64, 5120, 24, 32, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "t5-v1.1-xxl": t5(4096, 64, 10240, 24, 64, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "vit-b16": dict(model_type="vit", id2label={str(i): str(i) for i in range(1000)}),
    "vit-l16": dict(model_type="vit", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                    intermediate_size=4096, id2label={str(i): str(i) for i in range(1000)}),
    "vit-h14": dict(model_type="vit", hidden_size=1280, num_hidden_layers=32, num_attention_heads=16,
                    intermediate_size=5120, patch_size=14, id2label={str(i): str(i) for i in range(1000)}),
}


def odd_decoder(kind, draw):
    heads = draw.randint(1, 12)
    width = heads * 2 * draw.randint(1, 20)
    config = dict(model_type=kind, vocab_size=draw.randint(2, 999), rms_norm_eps=1e-5, hidden_size=width,
                  num_attention_heads=heads, num_hidden_layers=draw.randint(1, 5),
                  intermediate_size=draw.randint(1, 500), max_position_embeddings=draw.randint(16, 99))
    divisors = [d for d in range(1, heads + 1) if heads % d == 0]
    config["num_key_value_heads"] = draw.choice(divisors)
    if draw.random() < 0.5:
        config["head_dim"] = 2 * draw.randint(1, 40)
    if draw.random() < 0.5:
        config["tie_word_embeddings"] = draw.random() < 0.5
    if kind == "llama" and draw.random() < 0.5:
        config["attention_bias"] = draw.random() < 0.7
    if kind == "llama" and draw.random() < 0.5:
        config["mlp_bias"] = draw.random() < 0.7
    return config


def odd_gpt2(draw):
    heads = draw.randint(1, 9)
    config = dict(model_type="gpt2", n_embd=heads * draw.randint(1, 30), n_head=heads, n_layer=draw.randint(1, 5),
                  vocab_size=draw.randint(2, 999), n_positions=draw.randint(16, 99))
    if draw.random() < 0.5:
        config["n_inner"] = draw.choice([None, draw.randint(1, 300)])
    if draw.random() < 0.5:
        config["tie_word_embeddings"] = draw.random() < 0.5
    return config


def odd_mpt(draw):
    heads = draw.randint(1, 9)
    return dict(model_type="mpt", d_model=heads * draw.randint(1, 30), n_heads=heads, n_layers=draw.randint(1, 5),
                vocab_size=draw.randint(2, 999), max_seq_len=draw.randint(16, 99))


def odd_t5(draw):
    config = t5(draw.randint(1, 200), draw.randint(1, 70), draw.randint(1, 300), draw.randint(1, 5), draw.randint(1, 9))
    config["vocab_size"] = draw.randint(2, 999)
    config["feed_forward_proj"] = draw.choice(["relu", "gated-gelu", "gated-silu"])
    if draw.random() < 0.5:
        config["num_decoder_layers"] = draw.choice([None, draw.randint(1, 5)])
    if draw.random() < 0.3:
        config["relative_attention_num_buckets"] = 2 * draw.randint(2, 40)
    if draw.random() < 0.5:
        config["tie_word_embeddings"] = draw.random() < 0.5
    return config


def odd_vit(draw):
    heads = draw.randint(1, 9)
    patch = draw.randint(1, 20)
    config = dict(model_type="vit", hidden_size=heads * draw.randint(1, 30), num_attention_heads=heads,
                  num_hidden_layers=draw.randint(1, 5), intermediate_size=draw.randint(1, 300), patch_size=patch,
                  image_size=patch * draw.randint(1, 9), num_channels=draw.randint(1, 4))
    if draw.random() < 0.5:
        config["qkv_bias"] = draw.random() < 0.5
    if draw.random() < 0.5:
        config["id2label"] = {str(i): str(i) for i in range(draw.randint(1, 9))}
    return config


def cases():
    yield from PUBLISHED.items()
    draw = random.Random(1)
    for i in range(12):
        yield f"odd-gpt2-{i}", odd_gpt2(draw)
        yield f"odd-mpt-{i}", odd_mpt(draw)
        yield f"odd-t5-{i}", odd_t5(draw)
        yield f"odd-vit-{i}", odd_vit(draw)
        for kind in ("llama", "mistral", "qwen2"):
            yield f"odd-{kind}-{i}", odd_decoder(kind, draw)


rows = []
for name, config in cases():
    try:
        rows.append(json.dumps({"name": name, "parameters": parameters(config), "config": config}))
    except Exception as error:
        print(f"{name}: {config}: {error}", file=sys.stderr)
print("[\n" + ",\n".join(rows) + "\n]")
