#!/usr/bin/env python3
"""The order in which PyTorch's FSDP1 and FSDP2 issue their collectives around each unit's compute, for every setting.

Four units u0..u3 and a root that holds the first and last layer, 8 ranks (2 x 4 where hybrid) of a fake process group, two
steps. Prints CSV; `order` lists, as the host issues them: AG: RS: AR: (all-gather, reduce-scatter, all-reduce) and F: B:
(a unit's forward or backward begins), |microN and |step.

    pip install torch          # 2.15.0 made the committed file
    make_fsdp_collective_order.py > fsdp_collective_order.csv
"""
import csv, itertools, sys, warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WORLD, REPLICAS, WIDTHS = 8, 2, (8, 16, 24, 40, 56)
SIZES = (("u0", 136, 200), ("u1", 400, 460), ("u2", 1000, 1060), ("u3", 2296, 2360), ("root", 240, 560))  # elements, from unpadded to well padded
FSDP1 = {"full": "FULL_SHARD", "grad_op": "SHARD_GRAD_OP", "no": "NO_SHARD", "hybrid": "HYBRID_SHARD", "hybrid2": "_HYBRID_SHARD_ZERO2"}
PREFETCH = {"pre": BackwardPrefetch.BACKWARD_PRE, "post": BackwardPrefetch.BACKWARD_POST, "none": None}


class Unit(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.tanh(self.linear(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTHS[0], WIDTHS[0])
        self.units = nn.ModuleList(Unit(a, b) for a, b in itertools.pairwise(WIDTHS))
        self.last = nn.Linear(WIDTHS[-1], 3)

    def forward(self, x):
        x = self.first(x)
        for unit in self.units:
            x = unit(x)
        return self.last(x)


def unit_of(elements):
    return next(name for name, low, high in SIZES if low <= elements <= high)


class CollectiveLog(TorchDispatchMode):
    def __init__(self, log, shard_degree):
        super().__init__()
        self.log, self.shard_degree = log, shard_degree

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        name = str(op)
        if name.startswith("c10d."):
            sizes = [t.numel() for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
            if "gather" in name:
                self.log.append(f"AG:{unit_of(max(max(sizes), sum(sizes) - min(sizes)))}")
            elif "reduce_scatter" in name:
                self.log.append(f"RS:{unit_of(max(sizes))}")
            elif "allreduce" in name:
                self.log.append(f"AR:{unit_of(sizes[0] * self.shard_degree)}")
        return op(*args, **(kwargs or {}))


def wrap(runtime, strategy, backward_prefetch, forward_prefetch, depth):
    model, hybrid = Model(), "hybrid" in strategy
    mesh = init_device_mesh("cpu", (REPLICAS, WORLD // REPLICAS) if hybrid else (WORLD,), mesh_dim_names=("replicate", "shard") if hybrid else None)
    units = list(model.units)
    if runtime == "fsdp1":
        net = FullyShardedDataParallel(
            model, auto_wrap_policy=ModuleWrapPolicy({Unit}), sharding_strategy=ShardingStrategy[FSDP1[strategy]], device_id=torch.device("cpu"),
            backward_prefetch=PREFETCH[backward_prefetch], forward_prefetch=forward_prefetch, use_orig_params=False, device_mesh=mesh if hybrid else None)
        return net, units
    for unit in units:
        fully_shard(unit, mesh=mesh, reshard_after_forward=strategy in ("full", "hybrid"))
    net = fully_shard(model, mesh=mesh)
    for i, unit in enumerate(units if depth else []):
        unit.set_modules_to_forward_prefetch(units[i + 1:i + 1 + depth])
        unit.set_modules_to_backward_prefetch(units[:i][::-1][:depth])
    return net, units


def orders(runtime, strategy, backward_prefetch="pre", forward_prefetch=False, depth=0, micro_batches=1, no_sync=False):
    """Returns the order of step 1 and of step 2."""
    dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())
    try:
        net, units = wrap(runtime, strategy, backward_prefetch, forward_prefetch, depth)
        log = []
        shard_degree = WORLD // REPLICAS if "hybrid" in strategy else 1
        for i, unit in enumerate(units):
            unit.linear.register_forward_pre_hook(lambda *_, i=i: log.append(f"F:u{i}"))
            unit.linear.register_full_backward_pre_hook(lambda *_, i=i: log.append(f"B:u{i}"))
        sgd, result = torch.optim.SGD(net.parameters(), lr=0.1), []
        for _ in range(2):
            log.clear()
            for k in range(micro_batches):
                last = k == micro_batches - 1
                log.append(f"|micro{k}")
                with CollectiveLog(log, shard_degree):
                    if runtime == "fsdp1" and no_sync and not last:
                        with net.no_sync():
                            net(torch.ones(2, 8)).sum().backward()
                        continue
                    if runtime == "fsdp2":
                        net.set_requires_gradient_sync(last or not no_sync)
                        net.set_is_last_backward(last)
                    net(torch.ones(2, 8)).sum().backward()
            log.append("|step")
            sgd.step()
            sgd.zero_grad()
            result.append(" ".join(log))
        return result
    finally:
        dist.destroy_process_group()


def main():
    warnings.filterwarnings("ignore")
    accumulation = ((1, False), (2, False), (2, True))
    cases = [dict(runtime="fsdp1", strategy=s, backward_prefetch=b, forward_prefetch=f, micro_batches=m, no_sync=n)
             for s in FSDP1 for b in PREFETCH for f in (False, True) for m, n in accumulation]
    cases += [dict(runtime="fsdp2", strategy=s, depth=d, micro_batches=m, no_sync=n)
              for s in FSDP1 if s != "no" for d in (0, 1, 2) for m, n in accumulation]
    out = csv.writer(sys.stdout, lineterminator="\n")
    keys = ("runtime", "strategy", "backward_prefetch", "forward_prefetch", "depth", "micro_batches", "no_sync")
    out.writerow((*keys, "step", "order"))
    for case in cases:
        for step, order in enumerate(orders(**case), 1):
            out.writerow((*(case.get(k, "") for k in keys), step, order))


if __name__ == "__main__":
    main()
