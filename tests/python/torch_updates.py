"""Models whose backwards make updates, and steps of training to compare."""

import lowtide.torch
import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self, width=32, layers=3, dropout=0.1):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.dropout = dropout

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(F.gelu(layer(x)), self.dropout, self.training)
        return x.square().mean()


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, x, y):
        x = F.relu(self.norm(self.first(x)))
        return F.cross_entropy(self.head(F.relu(self.second(x)).mean((2, 3))), y)


class Gpt(nn.Module):
    """A language model whose head is its embedding."""

    def __init__(self, words=64, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 2, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class Broken(nn.Module):
    """Three graphs; the first and the last have a parameter in common if `tied`."""

    def __init__(self, tied=False):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(32, 32) for _ in range(3))
        if tied:
            self.third.weight = self.first.weight

    def forward(self, x):
        x = torch.tanh(self.first(x))
        torch._dynamo.graph_break()
        x = torch.tanh(self.second(x))
        torch._dynamo.graph_break()
        return torch.tanh(self.third(x)).square().mean()


def mlp_inputs(i=0):
    return (torch.randn(8, 32, generator=torch.Generator().manual_seed(i)),)


def cnn_inputs(i=0):
    generator = torch.Generator().manual_seed(i)
    return torch.randn(4, 3, 8, 8, generator=generator), torch.randint(0, 5, (4,), generator=generator)


def gpt_inputs(i=0):
    return (torch.randint(0, 64, (2, 12), generator=torch.Generator().manual_seed(i)),)


def compiled(model, inputs, optimizer, *, budget="100%", update="backward", **options):
    return lowtide.torch.optimize(model, inputs, budget=budget, optimizer=optimizer, update=update, costs="flops", work=1000,
                                  time=None, fallback="error", **options)


def flat(state):
    """What a state_dict of an optimizer holds, by its path."""
    if isinstance(state, dict):
        return {(key, *path): value for key in state for path, value in flat(state[key]).items()}
    if isinstance(state, (list, tuple)):
        return {(i, *path): value for i, part in enumerate(state) for path, value in flat(part).items()}
    return {(): state}


def assert_same(one, other):
    """Two pairs of module and optimizer: are all bits the same?"""
    for (name, a), b in zip(one[0].state_dict().items(), other[0].state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    a, b = flat(one[1].state_dict()), flat(other[1].state_dict())
    assert a.keys() == b.keys()
    for key in a:
        assert torch.equal(a[key], b[key]) if isinstance(a[key], torch.Tensor) else a[key] == b[key], key


def steps(module, optimizer, inputs, count=3, scheduler=None):
    torch.manual_seed(7)
    losses = []
    for i in range(count):
        loss = module(*inputs(i))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    return losses, torch.get_rng_state()
