"""LoRA beside the projections of a Llama of transformers, as peft 0.21 makes it, for make_fsdp_memory.py."""
from torch import nn


class Lora(nn.Module):
    """A projection as peft adapts it, by one adapter without dropout."""

    def __init__(self, base, rank):
        super().__init__()
        self.base_layer, self.scaling = base, 2.0
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, dtype=base.weight.dtype)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, dtype=base.weight.dtype)

    def forward(self, x):
        result = self.base_layer(x)
        result = result + self.lora_B(self.lora_A(x)) * self.scaling
        return result


def adapt(model, blocks, s):
    targets = [f"{name}_proj" for name in s.lora_targets.split("+")]
    if s.peft:
        from peft import LoraConfig, inject_adapter_in_model
        return inject_adapter_in_model(LoraConfig(r=s.lora_rank, lora_alpha=2 * s.lora_rank, target_modules=targets), model)
    model.requires_grad_(False)
    for block in blocks:
        for parent in (block.self_attn, block.mlp):
            for name in [name for name, _ in parent.named_children() if name in targets]:
                setattr(parent, name, Lora(getattr(parent, name), s.lora_rank))
