"""Random small modules: a chain of operations, each on the newest and on some earlier value.

A recipe is a list of (operation, which earlier value); every operation keeps the shape, so any recipe runs.
"""

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import nn

ROWS, WIDTH = 384, 64  # a mask of a draw is larger than the states that replay it


class Linear(nn.Module):
    """A layer of its own, or the first one again (tied)."""

    def __init__(self, tied=None):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        if tied is not None:
            self.layer.weight = tied.layer.weight

    def forward(self, x, y):
        return self.layer(x)


class Norm(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, y):
        return self.layer(x)


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x, y):
        return self.norm(self.layer(x.reshape(-1, 4, 16, WIDTH))).reshape(ROWS, WIDTH)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)

    def forward(self, x, y):
        q, k, v = self.qkv(x).view(4, ROWS // 4, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4).unbind(0)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(ROWS, WIDTH)


class Moving(nn.Module):
    """A buffer that moves; read after it has moved."""

    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(WIDTH))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x, y):
        self.average.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        self.count += 1
        return x - self.average / self.count


class Table(nn.Module):
    """Numbers of whole kinds: an index of the largest, looked up."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WIDTH, WIDTH)

    def forward(self, x, y):
        return x + self.table(y.argmax(-1))


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.never, self.frozen = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.ones(WIDTH), requires_grad=False)

    def forward(self, x, y):
        return x * self.frozen


def _half_in_place(x, y):
    x = x * 2
    x[:, : WIDTH // 2].mul_(0.5)
    x[1::2] += y[::2].sigmoid()
    return x


def _turned_in_place(x, y):
    x = x + x.detach().reshape(4, -1, WIDTH).unbind(0)[1].repeat(4, 1)
    return x.t().clone().relu_().t()


def _swapped(x, y):
    a, b, c = x.split([16, 16, 32], 1)
    return torch.cat([c, y[:, :16] * b, x.new_zeros(ROWS, 0), a], 1)


def _chosen(x, y):
    value, index = x.topk(8, -1)
    return torch.zeros_like(x).scatter(1, index, value.exp()) + y


def _sorted(x, y):
    value, index = x.sort(0)
    return value.gather(0, index.argsort(0)).cumsum(1) / WIDTH


def _complex(x, y):
    z = torch.view_as_complex(x.float().reshape(ROWS, -1, 2)) * torch.polar(torch.ones(32), torch.arange(32.0))
    return torch.view_as_real(z).flatten(1).to(x.dtype)


def _spectrum(x, y):
    return torch.fft.irfft(torch.fft.rfft(x.float()) * 0.5, n=WIDTH).to(x.dtype)


def _checkpointed(x, y):
    return torch.utils.checkpoint.checkpoint(lambda a, b: (a.tanh() * b).sigmoid(), x, y, use_reentrant=False)


def _put(x, y):
    rows = torch.arange(0, ROWS, 3)
    return x.index_put((rows,), y[rows].cos()).index_add(0, rows, y[rows])


FUNCTIONS = {
    "gelu": lambda x, y: F.gelu(x),
    "relu_": lambda x, y: F.relu_(x * 1.0),
    "silu": lambda x, y: F.silu(x),
    "softmax": lambda x, y: x.softmax(-1),
    "dropout": lambda x, y: F.dropout(x, 0.3),
    "dropout_": lambda x, y: F.dropout(x + 1, 0.2, inplace=True),
    "noise": lambda x, y: x + torch.rand_like(y) * y,
    "residual": lambda x, y: x + y,
    "product": lambda x, y: x * y.sigmoid(),
    "einsum": lambda x, y: x @ torch.einsum("bi,bj->ij", x, y).div(ROWS),
    "half_in_place": _half_in_place,
    "turned_in_place": _turned_in_place,
    "swapped": _swapped,
    "chosen": _chosen,
    "sorted": _sorted,
    "complex": _complex,
    "spectrum": _spectrum,
    "checkpoint": _checkpointed,
    "put": _put,
    "detached": lambda x, y: x + y.detach().sin(),
    "bfloat16": lambda x, y: (x.bfloat16() * y.to(torch.bfloat16)).to(x.dtype),
    "float": lambda x, y: x.float() + y.float().sin(),
    "where": lambda x, y: torch.where(x > y, x, 0.5 * y).masked_fill(x < -2, 0.1),
    "rolled": lambda x, y: x.roll(3, 0) + y.flip(1),
    "broadcast": lambda x, y: x - y.mean(1, keepdim=True).expand_as(x) + y.std(0),
    "interpolated": lambda x, y: F.avg_pool1d(x.reshape(1, ROWS, WIDTH), 2).repeat_interleave(2, -1)[0],
    "view": lambda x, y: x.reshape(-1, 8).view_as(y),
}
MODULES = {
    "linear": Linear, "layer_norm": lambda: Norm(nn.LayerNorm(WIDTH)), "rms_norm": lambda: Norm(nn.RMSNorm(WIDTH)),
    "batch_norm": lambda: Norm(nn.BatchNorm1d(WIDTH)), "convolution": Convolution, "attention": Attention,
    "moving": Moving, "table": Table, "unused": Unused, "tied": None,
}  # fmt: skip

# of torch_run.NUMBERS
NUMBERS = st.sampled_from(["f32", "f32", "f64", "bf16", "f16", "autocast bf16", "autocast f16"])
RECIPES = st.lists(st.tuples(st.sampled_from([*MODULES, "linear", *FUNCTIONS]), st.integers(0, 5)),
                   min_size=3, max_size=10)


class RandomModule(nn.Module):
    """A recipe as a module.  several: hands out what it made beside the loss, some of it twice and as views."""

    def __init__(self, recipe, several=False):
        super().__init__()
        self.recipe, self.several = recipe, several
        self.first = Linear()
        self.parts = nn.ModuleDict()
        for i, (name, _) in enumerate(recipe):
            if name in MODULES:
                self.parts[str(i)] = Linear(self.first) if name == "tied" else MODULES[name]()

    def forward(self, x):
        values = [self.first(x, x)]
        for i, (name, which) in enumerate(self.recipe):
            run = self.parts[str(i)] if name in MODULES else FUNCTIONS[name]
            x, y = values[-1], values[max(0, len(values) - 1 - which)]
            values.append(run(x, y.to(x.dtype)).to(x.dtype if name in MODULES else self.first.layer.weight.dtype))
        loss = values[-1].square().mean()
        if not self.several:
            return loss
        middle = values[len(values) // 2]
        return loss, middle, middle.t(), values[-1].detach(), [values[0].argmax(-1), x]
