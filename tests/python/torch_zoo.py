"""Small networks of every kind that the tests of lowtide.torch train, in plain PyTorch.

ZOO: name -> (module, inputs); a module's result is its loss.  Sizes are such that dropout masks are larger
than a generator's state in some, and that workspaces of kernels do not hide what is live.
"""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """A transformer's block, causal, with dropout."""

    def __init__(self, d, heads, p):
        super().__init__()
        self.heads, self.p = heads, p
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(d, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + F.dropout(self.out(a), self.p, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.p, self.training)


class Gpt(nn.Module):
    """Tied embedding and head."""

    def __init__(self, vocabulary=128, d=64, layers=4, heads=4, length=64, p=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads, p) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class DropoutMlp(nn.Module):
    def __init__(self, d=256, layers=5, p=0.5):
        super().__init__()
        self.layers, self.p = nn.ModuleList(nn.Linear(d, d) for _ in range(layers)), p

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(torch.tanh(layer(x)), self.p, self.training)
        return x.square().mean()


class Cnn(nn.Module):
    def __init__(self, inplace=True, channels=16):
        super().__init__()
        c = channels
        self.convs = nn.ModuleList([nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1),
                                    nn.Conv2d(c, 2 * c, 3, 2, 1)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(c), nn.BatchNorm2d(c), nn.BatchNorm2d(2 * c)])
        self.head, self.inplace = nn.Linear(2 * c, 10), inplace

    def forward(self, x, y):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.relu(norm(conv(x)), inplace=self.inplace)
        return F.cross_entropy(self.head(F.max_pool2d(x, 2).mean((2, 3))), y)


class Mixer(nn.Module):
    def __init__(self, tokens=32, d=32, layers=4):
        super().__init__()

        def mlp(n):
            return nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))

        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 * layers))
        self.across, self.along = (nn.ModuleList(mlp(n) for _ in range(layers)) for n in (tokens, d))

    def forward(self, x):
        for i, (across, along) in enumerate(zip(self.across, self.along, strict=True)):
            x = x + across(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + along(self.norms[2 * i + 1](x))
        return x.square().mean()


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

        self.down1, self.down2, self.middle = block(3, c), block(c, 2 * c), block(2 * c, 4 * c)
        self.lift2, self.lift1 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.up2, self.up1, self.out = block(4 * c, 2 * c), block(2 * c, c), nn.Conv2d(c, 4, 1)

    def scores(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        x = self.middle(F.max_pool2d(b, 2))
        x = self.up2(torch.cat([self.lift2(x), b], 1))
        return self.out(self.up1(torch.cat([self.lift1(x), a], 1)))

    def forward(self, x, y):
        return F.cross_entropy(self.scores(x), y)


class UNetOfSquares(UNet):
    """PyTorch has no deterministic cross_entropy of images on a GPU."""

    def forward(self, x, y):
        return (self.scores(x) - y[:, None]).square().mean()


class Cells(nn.Module):
    """A recurrent net by its cell, with a loss at every step."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(32, 64), nn.Linear(64, 4)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 64)
        loss = 0
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
            loss = loss + self.out(h).square().mean()
        return loss


class Buffers(nn.Module):
    """A counter and a moving average, read after they have moved."""

    def __init__(self):
        super().__init__()
        self.linear, self.again = nn.Linear(64, 64), nn.Linear(64, 64)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("average", torch.zeros(64))

    def forward(self, x):
        y = self.linear(x).sigmoid()
        self.count += 1
        self.average.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        return (self.again(y).sigmoid() * self.average).square().sum() / self.count


class Noise(nn.Module):
    """Draws of several kinds, large and small, in an order of their own."""

    def __init__(self, d=256):
        super().__init__()
        self.linear = nn.Linear(d, d)

    def forward(self, x):
        y = self.linear(x)
        z = torch.rand_like(y) * y.tanh() + torch.bernoulli(y.sigmoid().detach()) * y
        z = F.dropout(z, 0.3) * F.dropout1d(z, 0.2).sigmoid() + torch.randn(1) + torch.randint(3, y.shape)
        return (F.rrelu(z, training=True) * F.alpha_dropout(z, 0.1)).mean()


class AttentionWithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 192)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 4, 48).transpose(1, 2).split(16, -1)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.2).square().mean()


class Spectral(nn.Module):
    """Complex numbers: a Fourier layer."""

    def __init__(self, c=16, modes=8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(c, c, modes, dtype=torch.cfloat) / c)
        self.mix, self.modes = nn.Conv1d(c, c, 1), modes

    def forward(self, x):
        for _ in range(3):
            spectrum = torch.fft.rfft(x)
            kept = torch.einsum("bim,iom->bom", spectrum[..., :self.modes], self.weight)
            rest = torch.zeros_like(spectrum)[..., self.modes:]
            x = F.gelu(torch.fft.irfft(torch.cat([kept, rest], -1), n=x.shape[-1]) + self.mix(x))
        return x.square().mean()


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), nn.LayerNorm(64))

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.body(self.body(x)).float().square().mean()


class FrozenNorm(nn.Module):
    """Batch norm in evaluation inside a step that trains, a frozen layer, a module used twice."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.frozen = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Conv2d(3, 3, 1)
        self.frozen.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x):
        for _ in range(2):
            x = self.frozen(F.relu(self.norm(self.conv(x))))
        return x.square().mean()


class NormTwice(nn.Module):
    """One batch norm that runs twice: its statistics move twice, in order."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8, momentum=0.3)

    def forward(self, x):
        return self.norm(self.conv(self.norm(self.conv(x)).relu())).square().mean()


class Norms(nn.Module):
    """A convolutional net with a norm and a dropout of every kind: under autocast the norms' statistics are in single
    precision, and what PyTorch's fake kernels say of them is not."""

    def __init__(self, c=32):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(i, c, 3, padding=1) for i in (3, c, c, c))
        self.norms = nn.ModuleList([nn.InstanceNorm2d(c, affine=True), nn.BatchNorm2d(c, affine=False),
                                    nn.GroupNorm(4, c), nn.BatchNorm2d(c)])
        self.drops = nn.ModuleList([nn.Dropout(0.15), nn.Dropout2d(0.1), nn.FeatureAlphaDropout(0.1), nn.Dropout(0.3)])
        self.head = nn.Linear(c, 10)

    def forward(self, x, y):
        for conv, norm, drop in zip(self.convs, self.norms, self.drops, strict=True):
            x = drop(F.silu(norm(conv(x))))
        return F.cross_entropy(self.head(x.mean((2, 3))), y)


class Transposed(nn.Module):
    """Weights whose gradients come out transposed: the autograd engine would copy each, beside all of them."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(256, 256) / 16 for _ in range(6))

    def forward(self, x):
        for weight in self.weights:
            x = torch.tanh(weight.t().contiguous() @ x)
        return x.square().mean()


def _tokens(batch=8, length=64, vocabulary=128):
    return torch.randint(vocabulary, (batch, length))


ZOO = {
    "gpt": lambda: (Gpt(), (_tokens(), _tokens())),
    "gpt_dropout": lambda: (Gpt(p=0.1), (_tokens(), _tokens())),
    "dropout_mlp": lambda: (DropoutMlp(), (torch.randn(256, 256),)),
    "cnn": lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))),
    "mixer": lambda: (Mixer(), (torch.randn(8, 32, 32),)),
    "unet": lambda: (UNet(), (torch.randn(2, 3, 32, 32), torch.randint(4, (2, 32, 32)))),
    "encoder": lambda: (_Loss(nn.TransformerEncoder(nn.TransformerEncoderLayer(
        32, 4, 64, dropout=0.1, batch_first=True), 2, enable_nested_tensor=False)), (torch.randn(4, 32, 32),)),
    "cells": lambda: (Cells(), (torch.randn(8, 5, 32),)),
    "buffers": lambda: (Buffers(), (torch.randn(32, 64),)),
    "noise": lambda: (Noise(), (torch.randn(256, 256),)),
    "attention_dropout": lambda: (AttentionWithDropout(), (torch.randn(4, 64, 64),)),
    "spectral": lambda: (Spectral(), (torch.randn(4, 16, 64),)),
    "autocast": lambda: (Autocast(), (torch.randn(32, 64),)),
    "frozen_norm": lambda: (FrozenNorm(), (torch.randn(4, 3, 16, 16),)),
    "norm_twice": lambda: (NormTwice(), (torch.randn(4, 8, 16, 16),)),
    "norms": lambda: (Norms(), (torch.randn(2, 3, 16, 16), torch.randint(10, (2,)))),
    "transposed": lambda: (Transposed(), (torch.randn(256, 4),)),
    "half": lambda: (_Loss(nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64)).bfloat16()),
                     (torch.randn(32, 64, dtype=torch.bfloat16),)),
    "group_norm": lambda: (_Loss(nn.Sequential(nn.Conv1d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(),
                                               nn.Conv1d(16, 8, 3, padding=1))), (torch.randn(4, 8, 64),)),
}


class _Loss(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x).square().mean()
