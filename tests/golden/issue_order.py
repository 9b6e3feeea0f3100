"""The order in which FSDP1, FSDP2 and DDP issue collectives around the blocks of a transformers model, for make_fsdp_memory.py."""
from torch.distributed.fsdp import _flat_param, _runtime_utils
from torch.distributed.fsdp._fully_shard import _fsdp_param_group


def ends_of(block):
    """Modules that run first and last in a block of Llama's family or of T5."""
    if hasattr(block, "layer"):
        return block.layer[0].layer_norm, block.layer[-1].DenseReluDense
    return block.input_layernorm, block.mlp


class Order:
    """What is issued, by the units that runtimes work on when they call their collectives."""

    def __init__(self):
        self.words, self.unit, self.names = [], "root", {}

    def working_on(self, owner, name, module_of):
        """While `owner.name` runs, collectives are of its unit."""
        inner = getattr(owner, name)

        def call(*args, **kwargs):
            before, self.unit = self.unit, self.names.get(module_of(args), "root")
            try:
                return inner(*args, **kwargs)
            finally:
                self.unit = before
        setattr(owner, name, call)
        return lambda: setattr(owner, name, inner)

    def watch(self, blocks, live):
        def began(_module, _args, unit):
            if live.phase == "forward":
                self.words.append(f"F:{unit}")

        def ended(_module, _args, out, unit):
            if live.phase == "forward":
                out.register_hook(lambda _: self.words.append(f"B:{unit}"))
        for i, block in enumerate(blocks):
            self.names[block] = f"u{i}"
            first, last = ends_of(block)
            first.register_forward_pre_hook(lambda *a, i=i: began(*a, f"u{i}"))
            last.register_forward_hook(lambda *a, i=i: ended(*a, f"u{i}"))
        group = _fsdp_param_group.FSDPParamGroup
        self.undo = [self.working_on(_flat_param.FlatParamHandle, "unshard", lambda a: a[0]._fully_sharded_module),
                     self.working_on(_runtime_utils, "_reduce_grad", lambda a: a[1]._fully_sharded_module),
                     self.working_on(_runtime_utils, "_reduce_grad_no_shard", lambda a: a[1]._fully_sharded_module),
                     self.working_on(group, "unshard", lambda a: a[0].modules[0]),
                     self.working_on(group, "post_backward", lambda a: a[0].modules[0])]

    def add(self, op, args, is_ddp):
        for part, word in (("gather", "AG"), ("reduce_scatter", "RS"), ("allreduce", "AR")):
            if op.startswith("c10d.") and part in op:
                self.words.append(f"{word}:{args[0][0].numel() if is_ddp else self.unit}")
