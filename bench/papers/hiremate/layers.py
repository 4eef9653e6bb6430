"""Networks of HiRemate's table 4 that are no neural operators, written from the papers that describe them."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

# ---- transformers


class Block(nn.Module):
    """GPT-2's: causal attention, scores kept and dropped out as in HiRemate's graphs, and a feed-forward layer."""

    def __init__(self, width: int, heads: int, length: int, dropout: float) -> None:
        super().__init__()
        self.register_buffer("later", torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.out(self._attend(self.norm1(x))))
        return x + self.dropout(self.feed(self.norm2(x)))

    def _attend(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        later = self.later[:x.shape[1], :x.shape[1]]
        shares = self.dropout(scores.masked_fill(later, -math.inf).softmax(-1))
        return (shares @ v).transpose(1, 2).flatten(2)


class Gpt(nn.Module):
    """Embedding and output layer are one weight."""

    def __init__(self, layers: int, width: int = 768, heads: int = 12, vocabulary: int = 50257, length: int = 1024,
                 dropout: float = 0.1) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, length, dropout) for _ in range(layers)))
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.dropout(self.tokens(tokens) + self.places.weight[:tokens.shape[1]])
        return self.head(self.norm(self.blocks(x)))


class Transformer(nn.Module):
    """nn.Transformer with attention by products and a softmax, as the paper's PyTorch ran it, not by a fused kernel."""

    def __init__(self, layers: int, width: int = 512, heads: int = 16) -> None:
        super().__init__()
        self.inner = nn.Transformer(width, heads, layers, layers, 4 * width)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return self.inner(source, target)


class Mix(nn.Module):
    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        # across tokens by a convolution over them, so that none of it is transposed
        self.across = nn.Sequential(nn.Conv1d(tokens, 4 * tokens, 1), nn.GELU(), nn.Conv1d(4 * tokens, tokens, 1))
        self.along = nn.Sequential(nn.Linear(width, width // 2), nn.GELU(), nn.Linear(width // 2, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across(self.norm1(x))
        return x + self.along(self.norm2(x))


class Mixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al., 2021). The perceptron across tokens is four times as wide inside, that along
    channels half as wide: so its activations take the 8.4 GB of HiRemate's table 4, where twice four would take 13."""

    def __init__(self, side: int = 256, patch: int = 16, width: int = 512, depth: int = 12,
                 classes: int = 1000) -> None:
        super().__init__()
        self.patch, self.lift = patch, nn.Linear(3 * patch * patch, width)
        self.blocks = nn.Sequential(*(Mix((side // patch) ** 2, width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        patches = F.unfold(images, self.patch, stride=self.patch).transpose(1, 2)
        return self.head(self.norm(self.blocks(self.lift(patches))).mean(1))


# ---- convolutions


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, relu: bool = True) -> nn.Sequential:
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if relu else []))


class Residual(nn.Module):
    """Convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)
        same = inputs == outputs and stride == 1
        self.short = nn.Identity() if same else conv(inputs, outputs, 1, stride, relu=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.short(x), inplace=True)


def basic(inputs: int, outputs: int, stride: int) -> Residual:
    return Residual(inputs, outputs, stride, conv(inputs, outputs, 3, stride), conv(outputs, outputs, 3, relu=False))


def bottleneck(inputs: int, inner: int, outputs: int, stride: int, groups: int = 1) -> Residual:
    return Residual(inputs, outputs, stride, conv(inputs, inner, 1), conv(inner, inner, 3, stride, groups),
                    conv(inner, outputs, 1, relu=False))


def classifier(*layers: nn.Module, width: int, classes: int) -> nn.Sequential:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def resnet(depths: tuple[int, ...] = (3, 4, 23, 3), width: int = 64, classes: int = 1000,
           deep: bool = True) -> nn.Sequential:
    """ResNet-101, or with basic blocks where it is not `deep` (He et al., 2016)."""
    layers: list[nn.Module] = [conv(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, depth in enumerate(depths):
        inner = width << stage
        outputs = 4 * inner if deep else inner
        for i in range(depth):
            stride = 2 if stage and not i else 1
            layers.append(bottleneck(inputs, inner, outputs, stride) if deep else basic(inputs, outputs, stride))
            inputs = outputs
    return classifier(*layers, width=inputs, classes=classes)


def regnet(depths: tuple[int, ...] = (2, 7, 13, 1), widths: tuple[int, ...] = (336, 672, 1344, 2520), group: int = 168,
           stem: int = 32, classes: int = 1000) -> nn.Sequential:
    """RegNetX-32GF (Radosavovic et al., 2020)."""
    layers: list[nn.Module] = [conv(3, stem, 3, 2)]
    inputs = stem
    for width, depth in zip(widths, depths, strict=True):
        for i in range(depth):
            layers.append(bottleneck(inputs, width, width, 1 if i else 2, width // group))
            inputs = width
    return classifier(*layers, width=inputs, classes=classes)


class UNet(nn.Module):
    """U-Net with batch norms (Ronneberger et al., 2015), four levels below the first."""

    def __init__(self, inputs: int, outputs: int, width: int) -> None:
        super().__init__()
        widths = [width << level for level in range(5)]
        self.down = nn.ModuleList(nn.Sequential(conv(a, b, 3), conv(b, b, 3)) for a, b in
                                  zip((inputs, *widths), widths))
        self.raised = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
        self.merge = nn.ModuleList(nn.Sequential(conv(2 * w, w, 3), conv(w, w, 3)) for w in widths[-2::-1])
        self.head = nn.Conv2d(width, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        skipped = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            skipped.append(x)
        skipped.pop()
        for raised, merge in zip(self.raised, self.merge, strict=True):
            x = merge(torch.cat((raised(x), skipped.pop()), 1))
        return self.head(x).sigmoid()
