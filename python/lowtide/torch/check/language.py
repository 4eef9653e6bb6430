"""Language models of the check."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from .section import Context
from .sizes import batch_that_fits


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(d, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + F.dropout(self.out(a), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class Gpt(nn.Module):
    """A GPT whose result is its loss.  checkpointed: each block is a torch.utils.checkpoint."""

    checkpointed = False

    def __init__(self, words: int, width: int, layers: int, heads: int, length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(_Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Attention(nn.Module):
    """Two layers of attention with dropout in it, which draws its numbers within one kernel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            b, t, d = x.shape
            q, k, v = (y.view(b, t, 4, -1).transpose(1, 2) for y in self.qkv(x).split(d, -1))
            a = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x.float().square().mean()


def gpt(context: Context, dtype: torch.dtype = torch.float32, layers: int = 12, batch: int = 16,
        dropout: float = 0.0) -> tuple[Gpt, Any]:
    """A GPT of 136 million parameters with 12 layers; in bf16 a step of 16 sequences takes 8 GiB, in f32 one of 8 with 8 layers 7."""
    size = (256, 64, min(layers, 3), 4, 64) if context.tiny else (32768, 768, layers, 12, 1024)
    return _made(context, size, 4 if context.tiny else batch_that_fits(context, batch, 0.28 * dtype.itemsize), dtype, dropout)


def large_gpt(context: Context) -> tuple[Gpt, Any]:
    """A GPT of 1.3 billion parameters, in bf16: 2.7 GB of weights, as much of gradients, and up to 4 GiB a sequence."""
    size = (256, 64, 4, 4, 64) if context.tiny else (32768, 2048, 24, 16, 2048)
    return _made(context, size, 4 if context.tiny else batch_that_fits(context, 8, 4, fixed=6), torch.bfloat16, 0.0)


def _made(context: Context, size: tuple[int, int, int, int, int], batch: int, dtype: torch.dtype,
          dropout: float) -> tuple[Gpt, Any]:
    torch.manual_seed(0)
    words, _, _, _, length = size
    with torch.device(context.device):
        module = Gpt(*size, dropout)
        # tensors of their own: rows of one would be views of one storage
        inputs = tuple(torch.randint(words, (batch, length)) for _ in range(2))
    return module.to(dtype), inputs
