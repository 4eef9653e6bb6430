"""MAGIS' seven workloads (ASPLOS 2024, table 2): training steps as its own builders make them, and the real models.

PAPER[name].build(batch) returns (module, inputs, loss function), as lowtide.torch.capture takes them, of what the
released code builds: no batch norm, bias, embedding or head, norms without weights, ReLU for GELU, average pooling, plain
encoders for the language models; the loss is a squared difference, and each weight is updated by w += g.  REAL has the
same networks with all of that, from bench/torch/networks.py where they are there.  Capture makes all tensors fake.
"""
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.append(str(Path(__file__).resolve().parents[2] / "torch"))
import networks


@dataclass(frozen=True)
class Workload:
    title: str
    build: Callable[[int], Any]  # of the batch
    batch: int
    dtype: str = "f32"


def linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


def squared(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    return (model(x) - target).square().sum()


# ---- encoders


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.shape = heads, (width,)
        self.q, self.k, self.v, self.out = (linear(width, width) for _ in range(4))
        self.up, self.down = linear(width, 4 * width), linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        x = F.layer_norm(x + self.out((scores @ v).transpose(1, 2).flatten(2)), self.shape)
        return F.layer_norm(x + self.down(F.relu(self.up(x))), self.shape)


def encoder(batch: int, length: int, width: int, heads: int, layers: int) -> Any:
    x = torch.empty(batch, length, width)
    return nn.Sequential(*(Block(width, heads) for _ in range(layers))), (x, torch.empty_like(x)), squared


class Patches(nn.Module):
    def __init__(self, width: int, patch: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, patch, patch, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.conv(images).flatten(2).transpose(1, 2)


def vit(batch: int, side: int = 224, patch: int = 16, width: int = 768, heads: int = 12, layers: int = 12) -> Any:
    model = nn.Sequential(Patches(width, patch), *(Block(width, heads) for _ in range(layers)))
    return model, (torch.empty(batch, 3, side, side), torch.empty(batch, (side // patch) ** 2, width)), squared


# ---- convolutions


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.a, self.b, self.c = conv(inputs, width, 1), conv(width, width, 3, stride), conv(width, 4 * width, 1)
        self.short = conv(inputs, 4 * width, 1, stride) if stride > 1 or inputs != 4 * width else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.c(F.relu(self.b(F.relu(self.a(x))))) + self.short(x))


def resnet(batch: int, depths: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, side: int = 224) -> Any:
    layers: list[nn.Module] = [conv(3, width, 7, 2), nn.ReLU(), nn.AvgPool2d(3, 2, 1)]
    channels = width
    for i, depth in enumerate(depths):
        for j in range(depth):
            layers.append(Bottleneck(channels, width << i, 2 if i and not j else 1))
            channels = 4 * width << i
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return model, (torch.empty(batch, 3, side, side), torch.empty(batch, channels)), squared


def twice(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(conv(inputs, outputs), nn.ReLU(), conv(outputs, outputs), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.down = nn.ModuleList(twice(a, b) for a, b in zip((3, *widths), widths))
        self.raised = nn.ModuleList(nn.Sequential(nn.Upsample(scale_factor=2), conv(2 * w, w)) for w in widths[-2::-1])
        self.merge = nn.ModuleList(twice(2 * w, w) for w in widths[-2::-1])

    def forward(self, x: Tensor) -> Tensor:
        skipped: list[Tensor] = []
        for i, block in enumerate(self.down):
            x = block(F.avg_pool2d(x, 2) if i else x)
            skipped.append(x)
        skipped.pop()
        for raised, merge in zip(self.raised, self.merge, strict=True):
            x = merge(torch.cat((skipped.pop(), raised(x)), 1))
        return x


class UNetPlusPlus(nn.Module):
    """Node (level, step) takes all earlier nodes of its level and the raised one from below."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.levels = len(widths)
        self.down = nn.ModuleList(twice(a, b) for a, b in zip((3, *widths), widths))
        self.node = nn.ModuleDict({f"{i}_{j}": twice(j * widths[i] + widths[i + 1], widths[i])
                                   for j in range(1, self.levels) for i in range(self.levels - j)})

    def forward(self, x: Tensor) -> Tensor:
        rows: list[list[Tensor]] = []
        for i, block in enumerate(self.down):
            x = block(F.avg_pool2d(x, 2) if i else x)
            rows.append([x])
        for j in range(1, self.levels):
            for i in range(self.levels - j):
                raised = F.interpolate(rows[i + 1][j - 1], scale_factor=2)
                rows[i].append(self.node[f"{i}_{j}"](torch.cat((*rows[i], raised), 1)))
        return rows[0][-1]


def unet(kind: type[nn.Module], batch: int, side: int = 256, widths: tuple[int, ...] = (64, 128, 256, 512, 1024)) -> Any:
    return kind(widths), (torch.empty(batch, 3, side, side), torch.empty(batch, widths[0], side, side)), squared


PAPER = {
    "resnet50": Workload("ResNet-50", resnet, 64),
    "bert": Workload("BERT-base", lambda b: encoder(b, 512, 768, 12, 12), 32),
    "vit": Workload("ViT-base", vit, 64),
    "unet": Workload("U-Net", lambda b: unet(UNet, b), 32),
    "unetpp": Workload("U-Net++", lambda b: unet(UNetPlusPlus, b), 16),
    "gptneo": Workload("GPT-Neo-1.3B", lambda b: encoder(b, 512, 2048, 16, 24), 32, "bf16"),
    "btlm": Workload("BTLM-3B", lambda b: encoder(b, 512, 2560, 32, 32), 32, "bf16"),
}

# Like BERT, ResNet and U-Net, but small: for a look at the whole command in seconds.
TINY = {
    "tiny-encoder": Workload("two layers of an encoder", lambda b: encoder(b, 128, 256, 4, 2), 16),
    "tiny-resnet": Workload("a bottleneck network", lambda b: resnet(b, (1, 1), 16, 64), 16),
    "tiny-unet": Workload("a U-Net of three levels", lambda b: unet(UNet, b, 64, (16, 32, 64)), 8),
}


# ---- the real models


def _normed(module: nn.Module) -> nn.Module:
    """The module with a batch norm behind each convolution."""
    for name, child in module.named_children():
        if isinstance(child, nn.Conv2d):
            setattr(module, name, nn.Sequential(child, nn.BatchNorm2d(child.out_channels)))
        else:
            _normed(child)
    return module


def _real(name: str, inputs: Callable[[int], tuple[Tensor, ...]]) -> Callable[[int], Any]:
    def build(batch: int) -> Any:
        model, _, loss = networks.NETWORKS[name].build()
        return model, inputs(batch), loss

    return build


def _real_resnet(batch: int) -> Any:
    model, _, loss = networks.NETWORKS["resnet50"].build()
    return _normed(model), (torch.empty(batch, 3, 224, 224), torch.zeros(batch, dtype=torch.long)), loss


def _real_btlm(batch: int) -> Any:
    return (networks.Gpt(50257, 2560, 32, 32, 8192, bias=False, eager=True), _tokens(batch),
            networks._shifted)


def _tokens(batch: int) -> tuple[Tensor, ...]:
    return (torch.zeros(batch, 512, dtype=torch.long),)


def _classified(batch: int) -> tuple[Tensor, ...]:
    return torch.empty(batch, 3, 224, 224), torch.zeros(batch, dtype=torch.long)


def _grey(batch: int) -> tuple[Tensor, ...]:
    return (torch.empty(batch, 1, 256, 256),)


REAL = {
    "resnet50-real": Workload("ResNet-50 with batch norm and head", _real_resnet, 64),
    "bert-real": Workload("BERT-base with head, dropout, biases", _real("bert_base", _tokens), 32),
    "vit-real": Workload("ViT-B/16", _real("vit_base", _classified), 64),
    "unet-real": Workload("U-Net with biases and head", _real("unet", _grey), 32),
    "unetpp-real": Workload("U-Net++ with biases and head", _real("unetpp", _grey), 16),
    "gptneo-real": Workload("GPT-Neo-1.3B with head", _real("gpt_neo", _tokens), 32, "bf16"),
    "btlm-real": Workload("BTLM-3B's size, with head", _real_btlm, 32, "bf16"),
}

WORKLOADS = PAPER | REAL | TINY


def capture(name: str, batch: int | None = None) -> Any:
    """The graph of a step with its updates, priced in nothing that matters: `costs` prices it anew."""
    import lowtide.torch

    work = WORKLOADS[name]

    def update(module: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(module.parameters(), lr=1.0, foreach=False, fused=False)

    return lowtide.torch.capture(lambda: work.build(batch or work.batch), costs="a100", dtype=work.dtype, update=update,
                                 name=f"{work.title}, batch {batch or work.batch}")
