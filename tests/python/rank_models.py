"""Small models that several ranks train, and what becomes of them in a few steps."""

import collections
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 96), nn.Linear(96, 32)

    def forward(self, x):
        return x + F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training)


class Net(nn.Module):
    def __init__(self, blocks=3):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(blocks)), nn.Linear(32, 8)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x).square().mean()


def built(make, rank):
    """A module, its twin, and this rank's input."""
    torch.manual_seed(0)
    module = make()
    torch.manual_seed(10 + rank)
    return module, copy.deepcopy(module), torch.randn(128, 32)


def trained(module, step, x, seed, steps=2):
    """Losses and parameters, as this rank holds them, of a few steps of SGD."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    torch.manual_seed(seed)
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = step(x)
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    module.zero_grad()
    return seen + [getattr(p, "_local_tensor", p).detach().clone() for p in module.parameters()]


class Counted(TorchDispatchMode):
    """Counts the collectives that run."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "c10d" in function.namespace:
            self.calls[function.overloadpacket.__name__] += 1
        return function(*args, **(kwargs or {}))
