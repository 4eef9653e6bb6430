"""Training steps under plans on a GPU, by their names: a line of JSON for each, of what PyTorch's allocator counted.  Run by
test_torch_stand_in_gpu.py."""

import gc
import json
import sys
import warnings

import lowtide.torch
import torch
import torch.nn.functional as F
from torch import nn

warnings.simplefilter("ignore", lowtide.torch.LowtideWarning)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, 8, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).split(d, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(x)


class Language(nn.Module):
    def __init__(self, words=4096, width=512, layers=2):
        super().__init__()
        self.words, self.blocks = nn.Embedding(words, width), nn.Sequential(*(Block(width) for _ in range(layers)))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, targets):
        return F.cross_entropy(self.head(self.blocks(self.words(tokens))).flatten(0, 1), targets.flatten())


class Convolutions(nn.Module):
    def __init__(self, width=64, layers=4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.layers = nn.Sequential(*(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
                                      for _ in range(layers)))

    def forward(self, x):
        return self.layers(self.stem(x)).mean()


def language():
    torch.manual_seed(0)
    with torch.device("cuda"):
        return Language().bfloat16(), tuple(torch.randint(4096, (24, 512)) for _ in range(2))


def convolutions():
    torch.manual_seed(0)
    with torch.device("cuda"):
        return Convolutions(), (torch.randn(32, 3, 128, 128),)


def clean():
    """Let go of earlier steps, which plans would count."""
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()


def settle():
    """Wait until the engine's thread has let go of the backward before, whose tensors it may hold for a moment longer."""
    torch.ones(1, device="cuda", requires_grad=True).sum().backward()
    torch.cuda.synchronize()


def take(name, run, again, recorded):
    """Run a step three times, and say what the last two took; all, where steps are replayed, which allocates nothing."""
    if not recorded:
        run()
        again()
    gc.collect()
    settle()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(2):
        run()
        again()
        settle()
    report = lowtide.torch.reports()[-1]
    print(json.dumps({
        "name": name, "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(), "peak": report.peak,
        "own_peak": report.own_peak, "budget": report.budget, "footprint": report.footprint, "model": report.reserved}), flush=True)


def planned(name, make, warm=False, **options):
    module, inputs = make()

    def forget():
        module.zero_grad(set_to_none=True)

    if warm:
        module(*inputs).backward()
        forget()
    run = lowtide.torch.optimize(module, inputs, fallback="error", work=30_000, time=None, **options)
    take(name, lambda: run(*inputs).backward(), forget, "cuda_graph" in options)


def stepped(name, make, fused=None, foreach=None, **options):
    module, inputs = make()
    optimizer = torch.optim.AdamW(module.parameters(), fused=fused, foreach=foreach)
    step = lowtide.torch.step(module, optimizer, inputs, work=30_000, time=None, **options)
    take(name, lambda: step(*inputs), lambda: None, False)


STEPS = {
    "defaults": (planned, language, {"budget": "60%"}),
    "after eager steps": (planned, language, {"budget": "60%", "warm": True}),
    "expandable": (planned, language, {"budget": "60%"}),
    "convolutions": (planned, convolutions, {"budget": "60%"}),
    "live": (planned, language, {"budget": "50%", "footprint": "live"}),
    "copies": (planned, language, {"budget": "60%", "footprint": "live", "techniques": "offload,in_place"}),
    "prime": (planned, language, {"budget": "60%", "footprint": "live", "layout": "prime"}),
    "exact": (planned, language, {"budget": "60%", "footprint": "live", "layout": "exact"}),
    "graphs": (planned, language, {"budget": "60%", "cuda_graph": True}),
    "fused AdamW": (stepped, language, {"budget": "70%", "fused": True}),
    "foreach AdamW": (stepped, language, {"budget": "70%", "foreach": True}),
    "states on the host": (stepped, language, {"budget": "70%", "fused": True, "footprint": "live", "techniques": "all", "state_home": "host"}),
}

for name in sys.argv[1:]:
    how, make, options = STEPS[name]
    clean()
    how(name, make, **options)
