"""The networks of examples/ in plain PyTorch, as published, at sizes that people train.

Every entry of EXAMPLES builds (module, inputs, loss function) for a batch size.  Under capture all
tensors are fake, so nothing is initialised, loaded or drawn here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# ---- ResNet-50 (He et al. 2015), with the stride in the 3x3 convolution as everyone trains it ("v1.5")


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions beside a shortcut; four times `width` channels come out."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet50(nn.Module):
    """Images (batch, 3, 224, 224) -> logits (batch, classes); 25,557,032 parameters for 1000 classes."""

    def __init__(self, classes: int = 1000, depths: tuple[int, ...] = (3, 4, 6, 3)) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels, stages = 64, []
        for i, depth in enumerate(depths):
            width, blocks = 64 << i, []
            for j in range(depth):
                blocks.append(Bottleneck(channels, width, 2 if i > 0 and j == 0 else 1))
                channels = 4 * width
            stages.append(nn.Sequential(*blocks))
        self.layers = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


# ---- transformers: one block serves GPT-2 and ViT


def _dropout(p: float) -> nn.Module:
    return nn.Dropout(p) if p else nn.Identity()


class Attention(nn.Module):
    """Multi-head self-attention by the fused kernel; `dropout` on the result, none on the weights."""

    def __init__(self, width: int, heads: int, causal: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.dropout = _dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.c_attn(x).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.dropout(self.c_proj(y.transpose(1, 2).reshape(batch, length, width)))


class FeedForward(nn.Module):
    """Four times as wide inside; `gelu` is "tanh" (GPT-2) or "none" (ViT)."""

    def __init__(self, width: int, gelu: str, dropout: float) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU(approximate=gelu)
        self.c_proj = nn.Linear(4 * width, width)
        self.dropout = _dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    """Norm before attention, norm before the feed-forward layer, each beside a shortcut."""

    def __init__(self, width: int, heads: int, *, causal: bool, gelu: str, eps: float, dropout: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=eps)
        self.attn = Attention(width, heads, causal, dropout)
        self.ln_2 = nn.LayerNorm(width, eps=eps)
        self.mlp = FeedForward(width, gelu, dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Tokens (batch, length) -> logits (batch, length, vocabulary); Radford et al. 2019.

    The defaults are GPT-2 small, 124,439,808 parameters, the output layer tied to the embedding.
    Dropout 0.1 on embeddings and residuals; none inside attention, as with the fused kernel nowadays.
    """

    def __init__(self, vocabulary: int = 50257, length: int = 1024, width: int = 768, heads: int = 12,
                 depth: int = 12, dropout: float = 0.1) -> None:
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": (embedding := nn.Embedding(vocabulary, width)),
            "wpe": nn.Embedding(length, width),
            "drop": _dropout(dropout),
            "h": nn.ModuleList(Block(width, heads, causal=True, gelu="tanh", eps=1e-5, dropout=dropout)
                               for _ in range(depth)),
            "ln_f": nn.LayerNorm(width),
        })
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        parts: Any = self.transformer
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = parts["drop"](parts["wte"](tokens) + parts["wpe"](places))
        for block in parts["h"]:
            x = block(x)
        return self.lm_head(parts["ln_f"](x))


class ViT(nn.Module):
    """Images (batch, 3, 224, 224) -> logits (batch, classes); ViT-B/16 of Dosovitskiy et al. 2020.

    86,567,656 parameters.  No dropout, as in the recipes that train it on ImageNet-1k with heavy augmentation.
    """

    def __init__(self, side: int = 224, patch: int = 16, width: int = 768, heads: int = 12, depth: int = 12,
                 classes: int = 1000) -> None:
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embedding = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, width))
        self.layers = nn.Sequential(*(Block(width, heads, causal=False, gelu="none", eps=1e-6, dropout=0.0)
                                      for _ in range(depth)))
        self.ln = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embedding
        return self.head(self.ln(self.layers(x))[:, 0])


# ---- U-Net (Ronneberger et al. 2015), padded and with batch norm, as it is trained today


class DoubleConv(nn.Sequential):
    """Twice 3x3 convolution, batch norm, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers.append(nn.Conv2d(channels, outputs, 3, padding=1, bias=False))
            layers += [nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        super().__init__(*layers)


class UNet(nn.Module):
    """Images (batch, 3, side, side) -> logits (batch, classes, side, side); 64 to 1024 channels."""

    def __init__(self, classes: int = 2, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip([3, *widths[:-1]], widths, strict=True))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(DoubleConv(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skipped: list[Tensor] = []
        for i, block in enumerate(self.down):
            x = block(self.pool(x) if i else x)
            skipped.append(x)
        skipped.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skipped.pop(), up(x)], 1))
        return self.head(x)


# ---- what is trained on what


def _image_loss(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Labels (batch) of images or (batch, side, side) of pixels; logits have the classes second."""
    return F.cross_entropy(model(x).float(), labels)


def _token_loss(model: nn.Module, tokens: Tensor, following: Tensor) -> Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1).float(), following.flatten())


def _resnet50(batch: int) -> Any:
    return ResNet50(), (torch.empty(batch, 3, 224, 224), torch.zeros(batch, dtype=torch.long)), _image_loss


def _vit(batch: int) -> Any:
    return ViT(), (torch.empty(batch, 3, 224, 224), torch.zeros(batch, dtype=torch.long)), _image_loss


def _unet(batch: int) -> Any:
    return UNet(), (torch.empty(batch, 3, 512, 512), torch.zeros(batch, 512, 512, dtype=torch.long)), _image_loss


def _gpt2(batch: int) -> Any:
    tokens = torch.zeros(batch, 1024, dtype=torch.long)
    return GPT2(), (tokens, torch.zeros_like(tokens)), _token_loss


@dataclass(frozen=True)
class Example:
    """build(batch) -> (module, inputs, loss function); what the batch is made of, and a usual size."""

    build: Callable[[int], Any]
    title: str
    item: str
    batch: int


EXAMPLES = {
    "resnet50": Example(_resnet50, "ResNet-50", "224 x 224", 128),
    "gpt2": Example(_gpt2, "GPT-2 small, 12 layers", "1024 tokens", 12),
    "unet": Example(_unet, "U-Net, 64 to 1024 channels", "512 x 512", 16),
    "vit": Example(_vit, "ViT-B/16", "224 x 224", 128),
}
