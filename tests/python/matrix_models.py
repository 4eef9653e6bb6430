"""The models of the matrix of test_torch_matrix.py, in families by what a plan must get right in them: small, their loss their
result (or the first of several)."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_zoo import ZOO, Gpt


class Tied(nn.Module):
    """One weight in two layers, which run three times."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        for _ in range(3):
            x = self.b(self.a(x).tanh()).tanh()
        return x.square().mean()


class Codebook(nn.Module):
    """Codes that move by a running average in the forward, after the old ones were read."""

    def __init__(self, codes=24, width=32):
        super().__init__()
        self.into, self.out = nn.Linear(16, width), nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, 16))
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        h = self.into(x)
        nearest = torch.cdist(h.float(), self.codes.float()).argmin(-1)
        chosen = F.one_hot(nearest, len(self.codes)).to(self.codes.dtype)
        q = chosen @ self.codes
        if self.training:
            with torch.no_grad():
                self.counts.lerp_(chosen.sum(0), 0.1)
                self.codes.lerp_(chosen.t() @ h.to(self.codes.dtype) / self.counts.clamp(min=1e-2).unsqueeze(1), 0.1)
                self.steps += 1
        loss = F.mse_loss(h, q.detach().to(h.dtype))
        return (self.out(h + (q - h).detach()) - x).square().mean() + loss


class Views(nn.Module):
    """Parts of one storage that are written to one after the other, and read as a whole again."""

    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        both = self.into(x).sigmoid() + 0
        first, second, third = both[:, :32], both[:, 32:64], both[:, 64:]
        first.mul_(2)
        second.add_(first)
        third.tanh_()
        rows = both.view(-1, 3, 32).transpose(0, 1)
        return (self.out(rows.sum(0) + rows[1].relu()) * both[:, ::3]).square().mean()


class Counted(nn.Module):
    """An input that the forward changes."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x, seen):
        y = self.a(x).tanh()
        seen.add_(y.detach().sum(0).to(seen.dtype))
        return self.b(y).tanh().square().mean()


class Several(nn.Module):
    """A loss with what else it computed: results, a view of an input, a number, nothing."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 8)

    def forward(self, x):
        y = self.b(self.a(x).tanh()).tanh()
        scores = self.c(y)
        return scores.square().mean(), {"scores": scores.detach(), "flat": x.view(-1), "best": scores.argmax(-1), "n": 3, "no": None}


class Broken(nn.Module):
    """Three regions."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32)) for _ in range(3))

    def forward(self, x):
        x = torch.tanh(self.first(x))
        torch._dynamo.graph_break()
        x = F.dropout(torch.tanh(self.second(x)), 0.2, self.training)
        torch._dynamo.graph_break()
        return torch.tanh(self.third(x)).square().mean()


class Checkpointed(nn.Module):
    """Blocks with dropout that PyTorch would compute again."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 32)) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return x.square().mean()


class DropsAll(nn.Module):
    """Drops all, which draws nothing, and half of what is left."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return (F.dropout(self.first(x), 1.0) + F.dropout(self.second(x), 0.5)).float().square().mean()


class TimeFirst(nn.Module):
    """The gradients of its norm and its loss lie in another order than PyTorch's fake kernels say: what the tracer took for
    a view is a copy."""

    def __init__(self):
        super().__init__()
        self.into, self.norm, self.mix = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 32)

    def forward(self, x):
        h = self.norm(self.into(x).transpose(0, 1))
        h = (h + F.softplus(self.mix(h))).transpose(0, 1)
        return F.smooth_l1_loss(h, torch.ones_like(h))


def _language(**options):
    def tokens():
        return torch.randint(64, (8, 16))

    return lambda: (Gpt(vocabulary=64, d=32, layers=2, heads=2, length=16, **options), (tokens(), tokens()))


# what a plan must get right -> models of it, which take turns
FAMILIES = {
    "words": [_language(), _language(p=0.1), ZOO["encoder"], ZOO["mixer"]],
    "norms": [ZOO["cnn"], ZOO["norms"], ZOO["unet"], ZOO["norm_twice"], ZOO["group_norm"], ZOO["frozen_norm"]],
    "buffers": [ZOO["buffers"], lambda: (Codebook(), (torch.randn(128, 16),))],
    "draws": [ZOO["noise"], ZOO["dropout_mlp"], ZOO["attention_dropout"], lambda: (DropsAll(), (torch.randn(9, 16),))],
    "shared": [ZOO["cells"], lambda: (Tied(), (torch.randn(256, 64),))],
    "layouts": [ZOO["transposed"], lambda: (TimeFirst(), (torch.randn(10, 48, 16),))],
    "complex": [ZOO["spectral"]],
    "views": [lambda: (Views(), (torch.randn(64, 32),)), lambda: (Counted(), (torch.randn(256, 64), torch.zeros(64))),
              lambda: (Several(), (torch.randn(256, 64),))],
    "breaks": [lambda: (Broken(), (torch.randn(128, 32),))],
    "checkpoints": [lambda: (Checkpointed(), (torch.randn(128, 32),))],
}
