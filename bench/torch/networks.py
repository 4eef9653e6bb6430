"""The networks by which plans with transforms are judged: training steps of published sizes, in plain PyTorch.

NETWORKS names them; each entry's build() returns (module, inputs, loss function) as lowtide.torch.capture takes them.
Capture makes all tensors fake, so no size takes memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# ---- transformers


class Norm(nn.Module):
    """Root-mean-square norm, in f32 whatever the number type (Llama)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        return self.weight * (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class Attention(nn.Module):
    """Self-attention by the fused kernel, or by products and a softmax in f32 where `eager`."""

    def __init__(self, width: int, heads: int, *, causal: bool, dropout: float = 0.0, bias: bool = True,
                 eager: bool = False) -> None:
        super().__init__()
        self.heads, self.causal, self.eager = heads, causal, eager
        self.q, self.k, self.v = (nn.Linear(width, width, bias=bias) for _ in range(3))
        self.out, self.dropout = nn.Linear(width, width), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = self._eager(q, k, v) if self.eager else F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.dropout(self.out(y.transpose(1, 2).flatten(2)))

    def _eager(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q.float() @ k.float().transpose(-1, -2)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, torch.finfo(scores.dtype).min).softmax(-1).to(v.dtype) @ v


class Block(nn.Module):
    """Attention and a feed-forward layer four times as wide, each beside a shortcut; the norm after them in BERT."""

    def __init__(self, width: int, heads: int, *, causal: bool, dropout: float = 0.0, post_norm: bool = False,
                 tanh: bool = False, **attention: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, causal=causal, dropout=dropout, **attention)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.gelu, self.dropout, self.post_norm = nn.GELU("tanh" if tanh else "none"), nn.Dropout(dropout), post_norm

    def forward(self, x: Tensor) -> Tensor:
        if self.post_norm:
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + self._feed(x))
        x = x + self.attention(self.norm1(x))
        return x + self._feed(self.norm2(x))

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.gelu(self.up(x))))


class Bert(nn.Module):
    """Encoder with the masked-language head, whose output layer is tied to the embedding."""

    def __init__(self, vocabulary: int = 30522, width: int = 768, heads: int = 12, layers: int = 12,
                 length: int = 512) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False, dropout=0.1, post_norm=True)
                                      for _ in range(layers)))
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        return self.head(self.transform(self.blocks(self.dropout(self.norm(x)))))


class Gpt(nn.Module):
    """Causal decoder with learned places, its output layer tied to the embedding (GPT-2, GPT-Neo)."""

    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, length: int, dropout: float = 0.0,
                 **attention: bool) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=True, dropout=dropout, tanh=True, **attention)
                                      for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.dropout(self.tokens(tokens) + self.places.weight[:tokens.shape[1]])
        return self.head(self.norm(self.blocks(x)))


class RotaryAttention(nn.Module):
    """Grouped-query attention with rotary places (Llama)."""

    def __init__(self, width: int, heads: int, key_heads: int, base: float) -> None:
        super().__init__()
        self.heads, self.key_heads, self.base = heads, key_heads, base
        size = width // heads
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, key_heads * size, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        q = self._turn(self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2))
        k = self._turn(self.k(x).unflatten(-1, (self.key_heads, -1)).transpose(1, 2))
        v = self.v(x).unflatten(-1, (self.key_heads, -1)).transpose(1, 2)
        k, v = (y.repeat_interleave(self.heads // self.key_heads, 1) for y in (k, v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    def _turn(self, x: Tensor) -> Tensor:
        rates = self.base ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float32) / x.shape[-1])
        angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), rates).repeat(1, 2)
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * angles.cos().to(x.dtype) + turned * angles.sin().to(x.dtype)


class Gated(nn.Module):
    """silu(x gate) * (x up), brought back by down."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Mixtral's two of eight experts a token: rows in the order of their experts, as many for each expert."""

    def __init__(self, width: int, inner: int, experts: int = 8, chosen: int = 2) -> None:
        super().__init__()
        self.experts, self.chosen = experts, chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.gate, self.up = (nn.Parameter(torch.empty(experts, width, inner)) for _ in range(2))
        self.down = nn.Parameter(torch.empty(experts, inner, width))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, 1)
        weights, experts = self.router(rows).float().softmax(-1).topk(self.chosen)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        order = experts.flatten().argsort()
        source = order // self.chosen
        sent = rows[source].unflatten(0, (self.experts, -1))
        made = torch.bmm(F.silu(torch.bmm(sent, self.gate)) * torch.bmm(sent, self.up), self.down)
        made = made.flatten(0, 1) * weights.flatten()[order].unsqueeze(-1)
        return torch.zeros_like(rows).index_add(0, source, made).view_as(x)


class LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, key_heads: int, base: float, feed: nn.Module) -> None:
        super().__init__()
        self.attention = RotaryAttention(width, heads, key_heads, base)
        self.feed, self.norm1, self.norm2 = feed, Norm(width), Norm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Llama(nn.Module):
    def __init__(self, vocabulary: int, width: int, heads: int, key_heads: int, layers: int, base: float,
                 feed: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(vocabulary, width), Norm(width)
        self.blocks = nn.Sequential(*(LlamaBlock(width, heads, key_heads, base, feed()) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(tokens))))


class Vit(nn.Module):
    """ViT-B/16 with a class token."""

    def __init__(self, width: int = 768, heads: int = 12, layers: int = 12, side: int = 224, patch: int = 16,
                 classes: int = 1000) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


# ---- convolutions, without batch norm: that takes the whole batch at once


def twice(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(True),
                         nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(True))


def raised(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(inputs, outputs, 3, padding=1))


class UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512, 1024)) -> None:
        super().__init__()
        self.down = nn.ModuleList(twice(a, b) for a, b in zip((1, *widths), widths))
        self.up = nn.ModuleList(raised(2 * w, w) for w in widths[-2::-1])
        self.merge = nn.ModuleList(twice(2 * w, w) for w in widths[-2::-1])
        self.head = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        skipped: list[Tensor] = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            skipped.append(x)
        skipped.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat((skipped.pop(), up(x)), 1))
        return self.head(x).sigmoid()


class UNetPlusPlus(nn.Module):
    """Node (level, step) takes all earlier nodes of its level and the raised one from below."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512, 1024)) -> None:
        super().__init__()
        self.levels = len(widths)
        self.down = nn.ModuleList(twice(a, b) for a, b in zip((1, *widths), widths))
        places = [(i, j) for j in range(1, self.levels) for i in range(self.levels - j)]
        self.up = nn.ModuleDict({f"{i}_{j}": nn.ConvTranspose2d(widths[i + 1], widths[i], 2, 2) for i, j in places})
        self.node = nn.ModuleDict({f"{i}_{j}": twice((j + 1) * widths[i], widths[i]) for i, j in places})
        self.head = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        rows: list[list[Tensor]] = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            rows.append([x])
        for j in range(1, self.levels):
            for i in range(self.levels - j):
                up = self.up[f"{i}_{j}"](rows[i + 1][j - 1])
                rows[i].append(self.node[f"{i}_{j}"](torch.cat((*rows[i], up), 1)))
        return self.head(rows[0][-1])


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(inputs, width, 1), nn.Conv2d(width, width, 3, stride, 1)
        self.c = nn.Conv2d(width, 4 * width, 1)
        self.short = nn.Conv2d(inputs, 4 * width, 1, stride) if stride > 1 or inputs != 4 * width else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.c(F.relu(self.b(F.relu(self.a(x))))) + self.short(x))


def resnet50() -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for i, depth in enumerate((3, 4, 6, 3)):
        for j in range(depth):
            layers.append(Bottleneck(channels, 64 << i, 2 if i and not j else 1))
            channels = 256 << i
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


# ---- what is trained on what


def _tokens(batch: int, length: int) -> tuple[Tensor, ...]:
    return (torch.zeros(batch, length, dtype=torch.long),)


def _images(batch: int) -> tuple[Tensor, ...]:
    return torch.empty(batch, 3, 224, 224), torch.zeros(batch, dtype=torch.long)


def _masked(model: nn.Module, tokens: Tensor) -> Tensor:
    return F.cross_entropy(model(tokens).float().flatten(0, 1), tokens.flatten())


def _shifted(model: nn.Module, tokens: Tensor) -> Tensor:
    """Each token foretells the next: of T rows of logits T - 1 are used."""
    return F.cross_entropy(model(tokens)[:, :-1].float().flatten(0, 1), tokens[:, 1:].flatten())


def _classes(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(model(images).float(), labels)


def _sum(model: nn.Module, images: Tensor) -> Tensor:
    return model(images).sum()


def _mixtral() -> nn.Module:
    return Llama(32000, 4096, 32, 8, 8, 1e6, lambda: Experts(4096, 14336))


def _llama() -> nn.Module:
    return Llama(128256, 4096, 32, 8, 32, 5e5, lambda: Gated(4096, 14336))


@dataclass(frozen=True)
class Network:
    """build() -> (module, inputs, loss function); the batch axis is dimension 0 of the first input, but for one
    sequence, whose axis is its tokens."""

    title: str
    build: Callable[[], Any]
    dtype: str = "f32"
    axis: int = 0


NETWORKS = {
    "bert_base": Network("BERT-base, 32 x 512 tokens", lambda: (Bert(), _tokens(32, 512), _masked)),
    "gpt2_24": Network("GPT-2, 24 layers, 100 x 20 tokens",
                       lambda: (Gpt(50257, 768, 12, 24, 1024, 0.1), _tokens(100, 20), _shifted)),
    "llama_8b": Network("Llama 8B, 1 x 4096 tokens, bf16", lambda: (_llama(), _tokens(1, 4096), _shifted), "bf16", 1),
    "mixtral_8": Network("Mixtral, 8 layers, 1 x 2048 tokens, bf16",
                         lambda: (_mixtral(), _tokens(1, 2048), _shifted), "bf16", 1),
    "vit_base": Network("ViT-B/16, 64 images", lambda: (Vit(), _images(64), _classes)),
    "unet": Network("U-Net, 32 images of 256 x 256", lambda: (UNet(), (torch.empty(32, 1, 256, 256),), _sum)),
    "unetpp": Network("U-Net++, 16 images of 256 x 256",
                      lambda: (UNetPlusPlus(), (torch.empty(16, 1, 256, 256),), _sum)),
    "gpt_neo": Network("GPT-Neo 1.3B, 32 x 512 tokens, bf16",
                       lambda: (Gpt(50257, 2048, 16, 24, 2048, bias=False, eager=True), _tokens(32, 512), _shifted),
                       "bf16"),
    "resnet50": Network("ResNet-50 without batch norm, 64 images", lambda: (resnet50(), _images(64), _classes)),
}
