"""The twelve models of HiRemate's table 4 (ICML 2025), at the sizes of its released code, and small ones for a CPU.

MODELS[name].full() and .small() return (module, inputs); the module's result is its loss, the mean squared difference
from a target: like the paper's loss, one op between forward and backward.  `capture` makes the full ones fake; the
small ones train in seconds.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from fourier import Fno, UFno, Uno
from layers import Gpt, Mixer, Transformer, UNet, regnet, resnet
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...]]


class Trained(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, target: Tensor, *inputs: Tensor) -> Tensor:
        return F.mse_loss(self.net(*inputs), target)


def trained(net: nn.Module, *inputs: Tensor) -> Made:
    with torch.no_grad():
        target = torch.randn_like(net(*inputs))
    return Trained(net), (target, *inputs)


@dataclass(frozen=True)
class Model:
    title: str
    full: Callable[[], Made]
    small: Callable[[], Made]


def gpt(layers: int) -> Model:
    return Model(f"GPT-2, {layers} layers", lambda: trained(Gpt(layers), tokens(100, 50257)),
                 lambda: trained(Gpt(max(2, layers // 12), 96, 4, 64, 32), tokens(8, 64)))


def tokens(batch: int, vocabulary: int) -> Tensor:
    return torch.randint(vocabulary, (batch, 20))


def transformer(layers: int) -> Model:
    def build(depth: int, length: int, batch: int, width: int, heads: int) -> Made:
        source, target = torch.randn(length, batch, width), torch.randn(length, batch, width)
        return trained(Transformer(depth, width, heads), source, target)

    return Model(f"Transformer {layers}-{layers}", lambda: build(layers, 200, 32, 512, 16),
                 lambda: build(1 + layers // 12, 24, 4, 32, 4))


def images(batch: int, side: int) -> Tensor:
    return torch.randn(batch, 3, side, side)


# Modes of U-NO's operators: as many as their grids hold on the way down, fewer on the way up.
UNO_MODES = ((24, 24, 5), (16, 16, 5), (8, 8, 5), (4, 4, 8), (4, 4, 8), (4, 4, 8), (8, 8, 8), (16, 16, 12),
             (24, 24, 16))

MODELS = {
    "gpt24": gpt(24),
    "gpt96": gpt(96),
    "unet": Model("U-Net", lambda: trained(UNet(3, 1, 32), images(50, 256)),
                  lambda: trained(UNet(3, 1, 4), images(2, 64))),
    "mixer": Model("MLP-Mixer", lambda: trained(Mixer(), images(100, 256)),
                   lambda: trained(Mixer(64, 8, 32, 4, 10), images(4, 64))),
    "regnet32": Model("RegNet32", lambda: trained(regnet(), images(23, 256)),
                      lambda: trained(regnet((1, 4, 5, 1), (32, 48, 64, 96), 16, 16, 10), images(4, 32))),
    "resnet101": Model("ResNet101", lambda: trained(resnet(), images(64, 256)),
                       lambda: trained(resnet((1, 2, 3, 1), 8, 10), images(4, 64))),
    "transformer6": transformer(6),
    "transformer36": transformer(36),
    # the place of a point is among its values: 1 + 1, and 10 steps + 3
    "fno1d": Model("FNO 1D", lambda: trained(Fno(2, (16,), 64), torch.randn(4400, 256, 2)),
                   lambda: trained(Fno(2, (8,), 16), torch.randn(8, 64, 2))),
    "fno3d": Model("FNO 3D", lambda: trained(Fno(13, (16, 16, 16), 64, padding=6), torch.randn(5, 64, 64, 40, 13)),
                   lambda: trained(Fno(13, (3, 3, 3), 8, padding=2), torch.randn(2, 12, 12, 8, 13))),
    "ufno": Model("U-FNO", lambda: trained(UFno(12, (10, 10, 10), 36), torch.randn(3, 96, 200, 24, 12)),
                  lambda: trained(UFno(12, (3, 3, 3), 6), torch.randn(2, 8, 8, 8, 12))),
    "uno": Model("U-NO", lambda: trained(Uno(6, 8, UNO_MODES), torch.randn(2, 64, 64, 10, 6)),
                 lambda: trained(Uno(6, 2, ((2, 2, 2),) * 9), torch.randn(2, 32, 32, 4, 6))),
}


# Of tables 2 and 3, beside U-Net and MLP-Mixer from above; none of them is trained here.
SMALLER = {
    "resnet34": Model("ResNet34", lambda: trained(resnet((3, 4, 6, 3), deep=False), images(64, 256)),
                      lambda: trained(resnet((1, 1, 1, 1), 8, 10, deep=False), images(4, 64))),
    "transformer2": transformer(2),
    "gpt5": gpt(5),
}


def capture(model: Model, costs: str = "p100") -> Any:
    """The lowtide.Graph of a step at full size."""
    import lowtide.torch

    def build() -> Any:
        return *model.full(), None

    return lowtide.torch.capture(build, costs=costs, name=f"{model.title}, {costs}")
