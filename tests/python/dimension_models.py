"""Small networks of many kinds: MODELS: name -> a function of the batch that gives (module, inputs)."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def tokens(batch, length=12, vocabulary=40):
    return torch.zeros(batch, length, dtype=torch.int64) + torch.arange(length) % vocabulary


def images(batch, size=32):
    return torch.zeros(batch, 3, size, size), torch.zeros(batch, dtype=torch.int64)


class Block(nn.Module):
    """Self-attention and a feed-forward layer: by one kernel or by hand, norms before or after, causal or not."""

    def __init__(self, d=32, heads=4, causal=False, by_hand=False, after=False, dropout=0.0):
        super().__init__()
        self.heads, self.causal, self.by_hand, self.after = heads, causal, by_hand, after
        self.qkv, self.out, self.up, self.down = (nn.Linear(d, n * d) for n in (3, 1, 4, 1))
        self.down = nn.Linear(4 * d, d)
        self.norms, self.drop = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)]), nn.Dropout(dropout)

    def attention(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if self.by_hand:
            scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
            if self.causal:
                scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
            y = self.drop(scores.softmax(-1)) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.drop(self.out(y.transpose(1, 2).reshape(b, t, d)))

    def forward(self, x):
        first, second = self.norms
        if self.after:
            x = first(x + self.attention(x))
            return second(x + self.drop(self.down(F.gelu(self.up(x)))))
        x = x + self.attention(first(x))
        return x + self.drop(self.down(F.gelu(self.up(second(x)))))


class Language(nn.Module):
    """BERT or GPT; labels as they are, or shifted by one."""

    def __init__(self, shifted=False, tied=True, d=32, vocabulary=40, length=12, **options):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(vocabulary, d), nn.Embedding(length, d), nn.Embedding(2, d)
        self.blocks = nn.Sequential(*(Block(d, **options) for _ in range(2)))
        self.norm, self.head, self.shifted = nn.LayerNorm(d), nn.Linear(d, vocabulary), shifted
        if tied:
            self.head.weight = self.words.weight

    def forward(self, x, y=None):
        h = self.words(x) + self.places(torch.arange(x.shape[1])) + self.kinds(torch.zeros_like(x))
        scores = self.head(self.norm(self.blocks(h)))
        if self.shifted:
            return F.cross_entropy(scores[:, :-1].flatten(0, 1), x[:, 1:].flatten())
        return F.cross_entropy(scores.flatten(0, 1), (x if y is None else y).flatten())


class Llama(nn.Module):
    """Rotary embeddings, grouped heads, RMS norms, gated feed-forward."""

    def __init__(self, d=32, heads=4, groups=2, vocabulary=40):
        super().__init__()
        self.words, self.head = nn.Embedding(vocabulary, d), nn.Linear(d, vocabulary, bias=False)
        self.heads, self.size = heads, d // heads
        self.norms = nn.ModuleList(nn.RMSNorm(d) for _ in range(3))
        self.q, self.k, self.v, self.o = (nn.Linear(d, n * self.size, bias=False) for n in (heads, groups, groups, heads))
        self.gate, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, 3 * d), nn.Linear(3 * d, d)

    def forward(self, x):
        b, t = x.shape
        h, half = self.words(x), self.size // 2
        angles = torch.outer(torch.arange(t).float(), 100.0 ** (-torch.arange(0, self.size, 2) / self.size)).repeat(1, 2)
        y = self.norms[0](h)
        q, k, v = (f(y).view(b, t, -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = (z * angles.cos() + torch.cat([-z[..., half:], z[..., :half]], -1) * angles.sin() for z in (q, k))
        k, v = (z.repeat_interleave(self.heads // z.shape[1], 1) for z in (k, v))
        h = h + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1))
        y = self.norms[1](h)
        h = h + self.down(F.silu(self.gate(y)) * self.up(y))
        scores = self.head(self.norms[2](h)).float()
        return F.cross_entropy(scores[:, :-1].flatten(0, 1), x[:, 1:].flatten(), ignore_index=0)


class Vision(nn.Module):
    """A vision transformer with a class token."""

    def __init__(self, d=32, patch=8, size=32):
        super().__init__()
        self.patches, self.mark = nn.Conv2d(3, d, patch, patch), nn.Parameter(torch.zeros(1, 1, d))
        self.places = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, d))
        self.blocks, self.norm, self.head = nn.Sequential(Block(d), Block(d)), nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, x, y):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.mark.expand(len(x), -1, -1), x], 1) + self.places
        return F.cross_entropy(self.head(self.norm(self.blocks(x))[:, 0]), y)


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride, norm):
        super().__init__()
        o = 4 * width
        self.body = nn.Sequential(nn.Conv2d(i, width, 1), norm(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, stride, 1), norm(width), nn.ReLU(),
                                  nn.Conv2d(width, o, 1), norm(o))
        same = stride == 1 and i == o
        self.side = nn.Identity() if same else nn.Sequential(nn.Conv2d(i, o, 1, stride), norm(o))

    def forward(self, x):
        return F.relu(self.body(x) + self.side(x))


class ResNet(nn.Module):
    def __init__(self, norm, width=8):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3), norm(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.body = nn.Sequential(Bottleneck(width, width, 1, norm), Bottleneck(4 * width, width, 1, norm),
                                  Bottleneck(4 * width, 2 * width, 2, norm))
        self.head = nn.Linear(8 * width, 10)

    def forward(self, x, y):
        return F.cross_entropy(self.head(F.adaptive_avg_pool2d(self.body(self.stem(x)), 1).flatten(1)), y)


class UNet(nn.Module):
    def __init__(self, norm, up="transposed", c=8):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), norm(o), nn.SiLU())

        self.down, self.middle = nn.ModuleList([block(3, c), block(c, 2 * c)]), block(2 * c, 4 * c)
        self.up = nn.ModuleList([block(6 * c, 2 * c), block(3 * c, c)])
        self.lift = nn.ModuleList(nn.ConvTranspose2d(4 * c // n, 4 * c // n, 2, 2) if up == "transposed" else
                                  nn.Upsample(scale_factor=2, mode=up) for n in (1, 2))
        self.out = nn.Conv2d(c, 4, 1)

    def forward(self, x, y):
        kept = []
        for block in self.down:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.middle(x)
        for lift, block in zip(self.lift, self.up, strict=True):
            x = block(torch.cat([lift(x), kept.pop()], 1))
        return F.cross_entropy(self.out(x), y)


class Mixer(nn.Module):
    def __init__(self, t=16, d=32):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
        self.across, self.along = (nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n)) for n in (t, d))

    def forward(self, x):
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return (x + self.along(self.norms[1](x))).square().mean()


class Recurrent(nn.Module):
    def __init__(self, kind, batch_first=True):
        super().__init__()
        self.layer, self.out, self.batch_first = kind(16, 24, 2, batch_first=batch_first), nn.Linear(24, 8), batch_first

    def forward(self, x):
        return self.out(self.layer(x)[0]).square().mean()


class Experts(nn.Module):
    """Two of four experts for each token, by a dense product; with a loss of balance."""

    def __init__(self, d=16, experts=4):
        super().__init__()
        self.gate, self.head = nn.Linear(d, experts), nn.Linear(d, 10)
        self.up, self.down = nn.Parameter(torch.randn(experts, d, 2 * d)), nn.Parameter(torch.randn(experts, 2 * d, d))

    def forward(self, x, y):
        chances = self.gate(x).softmax(-1)
        weights, chosen = chances.topk(2, -1)
        gates = torch.zeros_like(chances).scatter(-1, chosen, weights)
        h = torch.einsum("ebtf,efd->ebtd", F.silu(torch.einsum("btd,edf->ebtf", x, self.up)), self.down)
        x = x + torch.einsum("ebtd,bte->btd", h, gates)
        return F.cross_entropy(self.head(x.mean(1)), y) + (chances.mean((0, 1)) * gates.mean((0, 1))).sum()


class StateSpace(nn.Module):
    """A selective scan, step by step, as in Mamba."""

    def __init__(self, d=8, n=4):
        super().__init__()
        self.wide, self.conv = nn.Linear(d, 4 * d), nn.Conv1d(2 * d, 2 * d, 4, groups=2 * d, padding=3)
        self.select, self.step = nn.Linear(2 * d, 2 * n + 1), nn.Linear(1, 2 * d)
        self.decay, self.out = nn.Parameter(torch.rand(2 * d, n)), nn.Linear(2 * d, d)

    def forward(self, u):
        b, t, _ = u.shape
        x, z = self.wide(u).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :t].transpose(1, 2))
        step, into, outof = self.select(x).split([1, self.decay.shape[1], self.decay.shape[1]], -1)
        step = F.softplus(self.step(step))
        keep, add = torch.exp(-step[..., None] * self.decay.exp()), (step * x)[..., None] * into[:, :, None]
        state, seen = torch.zeros(b, *keep.shape[2:]), []
        for i in range(t):
            state = keep[:, i] * state + add[:, i]
            seen.append((state * outof[:, i, None]).sum(-1))
        return (self.out(torch.stack(seen, 1) * F.silu(z)) - u).square().mean()


class Pairs(nn.Module):
    """Images and texts against all others of the batch."""

    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(32, 16), nn.Linear(24, 16)

    def forward(self, x, y):
        a, b = F.normalize(self.image(x), dim=-1), F.normalize(self.text(y), dim=-1)
        scores, match = a @ b.t(), torch.arange(len(x))
        return F.cross_entropy(scores, match) + F.cross_entropy(scores.t(), match)


class Whole(nn.Module):
    """A body whose loss is the mean of its squares."""

    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return self.body(x).square().mean()


class Losses(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.body, self.classes, self.weights = nn.Linear(16, 16), nn.Linear(16, 8), weights

    def forward(self, x, y):
        h = self.body(x).tanh()
        scores = self.classes(h)
        weight = torch.arange(8.) + 1 if self.weights else None
        return (F.cross_entropy(scores, y, weight=weight, label_smoothing=0 if self.weights else .1) + F.mse_loss(h, x)
                + F.smooth_l1_loss(h, x, reduction="sum") + F.binary_cross_entropy_with_logits(h, x.sigmoid()))


def encoder(length, batch):
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1)
    layer.self_attn.dropout = 0.0
    return Whole(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)), (torch.zeros(length, batch, 16),)


# name -> (function of the batch, dimension of the batch in the inputs, share of ops that must be carried in per cent)
MODELS = {
    "bert": (lambda b: (Language(after=True), (tokens(b), tokens(b))), 0, 93),
    "bert_by_hand": (lambda b: (Language(after=True, by_hand=True, dropout=.1), (tokens(b), tokens(b))), 0, 90),
    "gpt": (lambda b: (Language(True, causal=True), (tokens(b),)), 0, 93),
    "gpt_untied": (lambda b: (Language(True, False, causal=True, by_hand=True, dropout=.1), (tokens(b),)), 0, 85),
    "llama": (lambda b: (Llama(), (tokens(b),)), 0, 88),
    "vit": (lambda b: (Vision(), images(b)), 0, 98),
    "resnet": (lambda b: (ResNet(nn.Identity), images(b)), 0, 98),
    "resnet_group": (lambda b: (ResNet(lambda c: nn.GroupNorm(2, c)), images(b)), 0, 98),
    "resnet_instance": (lambda b: (ResNet(lambda c: nn.InstanceNorm2d(c, affine=True)), images(b)), 0, 85),
    "resnet_batch": (lambda b: (ResNet(nn.BatchNorm2d), images(b)), 0, 1),
    "unet": (lambda b: (UNet(nn.Identity), (images(b)[0], torch.zeros(b, 32, 32, dtype=torch.int64))), 0, 95),
    "unet_nearest": (lambda b: (UNet(nn.Identity, "nearest"), (images(b)[0], torch.zeros(b, 32, 32, dtype=torch.int64))),
                     0, 65),
    "mixer": (lambda b: (Mixer(), (torch.zeros(b, 16, 32),)), 0, 95),
    "lstm": (lambda b: (Recurrent(nn.LSTM), (torch.zeros(b, 5, 16),)), 0, 1),  # one kernel, which has no rule
    "gru_inside": (lambda b: (Recurrent(nn.GRU, False), (torch.zeros(5, b, 16),)), 1, 98),
    "experts": (lambda b: (Experts(), (torch.zeros(b, 6, 16), torch.zeros(b, dtype=torch.int64))), 0, 75),
    "state_space": (lambda b: (StateSpace(), (torch.zeros(b, 6, 8),)), 0, 98),
    "pairs": (lambda b: (Pairs(), (torch.zeros(b, 32), torch.zeros(b, 24))), 0, 30),
    "encoder_inside": (lambda b: encoder(10, b), 1, 85),
    "losses": (lambda b: (Losses(False), (torch.zeros(b, 16), torch.zeros(b, dtype=torch.int64))), 0, 60),
    "losses_weighted": (lambda b: (Losses(True), (torch.zeros(b, 16), torch.zeros(b, dtype=torch.int64))), 0, 60),
    "autoencoder": (lambda b: (Whole(nn.Conv1d(4, 8, 3, 2, 1), nn.PReLU(), nn.ConvTranspose1d(8, 4, 4, 2, 1), nn.ELU()),
                               (torch.zeros(b, 4, 16),)), 0, 90),
    "pools": (lambda b: (Whole(nn.Conv2d(3, 8, 3), nn.AvgPool2d(2), nn.Hardswish(), nn.PixelShuffle(2), nn.ReflectionPad2d(1)),
                         (images(b)[0],)), 0, 90),
}
