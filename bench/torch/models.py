"""The models that are trained, in plain PyTorch. A module's result is its loss.

Each runs its layers through `_Layered.layer`, which is where a user of torch.utils.checkpoint would put it.
"""
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class _Layered(nn.Module):
    checkpointed = False

    def layer(self, function, *inputs):
        return checkpoint(function, *inputs, use_reentrant=False) if self.checkpointed else function(*inputs)


class _Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (y.view(batch, length, self.heads, -1).transpose(1, 2)
                   for y in self.qkv(self.norm1(x)).split(width, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.out(mixed), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class Gpt(_Layered):
    """A causal transformer; embedding and head are one weight."""

    def __init__(self, vocabulary, width, layers, heads, length, dropout=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(_Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = self.layer(block, x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class _Mix(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across, self.along = (nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))
                                   for n in (tokens, width))

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm2(x))


class Mixer(_Layered):
    def __init__(self, tokens, width, layers):
        super().__init__()
        self.blocks = nn.ModuleList(_Mix(tokens, width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x, labels):
        for block in self.blocks:
            x = self.layer(block, x)
        return F.cross_entropy(self.head(self.norm(x).mean(1)), labels)


def _convolutions(inner, outer):
    parts = []
    for channels in (inner, outer):
        parts += [nn.Conv2d(channels, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)]
    return nn.Sequential(*parts)


class UNet(_Layered):
    """Two convolutions a level, batch norm, the way down joined to the way up."""

    def __init__(self, channels, levels):
        super().__init__()
        widths = [channels << i for i in range(levels)]
        self.down = nn.ModuleList(_convolutions(a, b) for a, b in zip([3, *widths[:-1]], widths))
        self.lift = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths[:-1], widths[1:]))
        self.up = nn.ModuleList(_convolutions(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(channels, 4, 1)

    def forward(self, x, labels):
        kept = []
        for i, block in enumerate(self.down):
            x = self.layer(block, F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for lift, block in zip(reversed(self.lift), reversed(self.up)):
            def join(low, side, lift=lift, block=block):
                return block(torch.cat([lift(low), side], 1))

            x = self.layer(join, x, kept.pop())
        return F.cross_entropy(self.head(x), labels)


class _Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
        self.conv2, self.norm2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
        self.short = nn.Identity() if inner == outer else nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(y)) + self.short(x), inplace=True)


class ResNet(_Layered):
    """Residual blocks in four stages."""

    def __init__(self, channels, blocks):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        widths = [channels << stage for stage in range(4) for _ in range(blocks)]
        self.blocks = nn.ModuleList(_Residual(a, b, 1 if a == b else 2) for a, b in zip([channels, *widths], widths))
        self.head = nn.Linear(widths[-1], 10)

    def forward(self, x, labels):
        x = self.stem(x)
        for block in self.blocks:
            x = self.layer(block, x)
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


@dataclass(frozen=True)
class Model:
    """title: for people. build: () -> (module, inputs), the same every time after the same seed."""

    title: str
    build: Callable[[], Any]


def _gpt(title, batch, length, width, layers, heads, vocabulary=128, dropout=0.0):
    def build():
        tokens = torch.randint(vocabulary, (batch, length + 1))
        inputs = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        return Gpt(vocabulary, width, layers, heads, length, dropout), inputs

    return Model(f"{title}: {layers} layers, width {width}, {length} tokens, batch {batch}", build)


def _mixer(batch, tokens, width, layers):
    def build():
        return Mixer(tokens, width, layers), (torch.randn(batch, tokens, width), torch.randint(10, (batch,)))

    return Model(f"MLP-mixer: {layers} layers, width {width}, {tokens} tokens, batch {batch}", build)


def _unet(batch, size, channels, levels):
    def build():
        return UNet(channels, levels), (torch.randn(batch, 3, size, size), torch.randint(4, (batch, size, size)))

    return Model(f"U-Net: {levels} levels, {channels} channels, {size} x {size}, batch {batch}", build)


def _resnet(batch, size, channels, blocks):
    def build():
        return ResNet(channels, blocks), (torch.randn(batch, 3, size, size), torch.randint(10, (batch,)))

    return Model(f"ResNet: {4 * blocks} blocks, {channels} channels, {size} x {size}, batch {batch}", build)


MODELS = {  # device -> name -> model
    "cpu": {
        "gpt6": _gpt("GPT", 8, 64, 64, 6, 4),
        "gpt6-dropout": _gpt("GPT with dropout 0.1", 8, 64, 64, 6, 4, dropout=0.1),
        "mixer": _mixer(8, 64, 64, 6),
        "unet": _unet(2, 64, 8, 3),
        "gpt12": _gpt("GPT", 2, 128, 256, 12, 8),
        "resnet": _resnet(8, 48, 16, 2),
    },
    "cuda": {
        "gpt6": _gpt("GPT", 32, 1024, 512, 6, 8, vocabulary=8192),
        "gpt6-dropout": _gpt("GPT with dropout 0.1", 32, 1024, 512, 6, 8, vocabulary=8192, dropout=0.1),
        "mixer": _mixer(256, 256, 512, 12),
        "unet": _unet(16, 256, 64, 4),
        "gpt12": _gpt("GPT", 16, 1024, 1024, 12, 16, vocabulary=16384),
        "resnet": _resnet(128, 128, 64, 3),
    },
}
