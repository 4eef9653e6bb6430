"""Convolutional networks of the check, and autocast around any model."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .section import Context
from .sizes import batch_that_fits


def _pair(before: int, after: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for channels in (before, after):
        parts += [nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    return nn.Sequential(*parts)


class UNet(nn.Module):
    """The loss is a mean of squares: cross_entropy of images has no deterministic forward on a GPU."""

    def __init__(self, channels: int, levels: int) -> None:
        super().__init__()
        widths = [channels << i for i in range(levels)]
        self.down = nn.ModuleList(_pair(a, b) for a, b in zip([3, *widths[:-1]], widths))
        self.lift = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths[:-1], widths[1:]))
        self.up = nn.ModuleList(_pair(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(channels, 4, 1)

    def forward(self, x: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for lift, block in zip(reversed(self.lift), reversed(self.up)):
            x = block(torch.cat([lift(x), kept.pop()], 1))
        return (self.head(x) - wanted).square().mean()


class _Bottleneck(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after))
        self.short = nn.Identity() if before == after and stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.short(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, depths: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, before = [], width
        for stage, depth in enumerate(depths):
            for k in range(depth):
                blocks.append(_Bottleneck(before, width << stage, 2 if stage and not k else 1))
                before = 4 * (width << stage)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(before, 1000)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.blocks(self.stem(x)).mean((2, 3))), labels)


class Autocast(nn.Module):
    """A model under autocast."""

    def __init__(self, body: nn.Module, device: str, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        self.body, self.device, self.dtype = body, device, dtype

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device, self.dtype):
            loss: torch.Tensor = self.body(*inputs)
        return loss


def unet(context: Context) -> tuple[nn.Module, Any]:
    """In f32; a step of 8 images of 512 x 512 takes 39 GiB, half of which are workspaces of convolutions."""
    torch.manual_seed(0)
    batch, size = (2, 32) if context.tiny else (batch_that_fits(context, 8, 5), 512)
    with torch.device(context.device):
        module = UNet(8, 3) if context.tiny else UNet(64, 5)
        return module, (torch.randn(batch, 3, size, size), torch.randn(batch, 4, size, size))


def resnet(context: Context) -> tuple[nn.Module, Any]:
    """ResNet-50; a step of 128 images takes 6 GiB under autocast."""
    return _classifier(context, (3, 4, 6, 3), 64, batch_that_fits(context, 128, 0.06))


def large_resnet(context: Context) -> tuple[nn.Module, Any]:
    """ResNet-152 of twice the width, in bf16: 230 million parameters."""
    module, (images, labels) = _classifier(context, (3, 8, 36, 3), 128, batch_that_fits(context, 64, 0.35, fixed=2))
    return module.to(torch.bfloat16), (images.to(torch.bfloat16), labels)


def _classifier(context: Context, depths: tuple[int, ...], width: int, batch: int) -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    if context.tiny:
        depths, width, batch = (1, 1), 8, 4
    size = 32 if context.tiny else 224
    with torch.device(context.device):
        return ResNet(depths, width), (torch.randn(batch, 3, size, size), torch.randint(1000, (batch,)))
