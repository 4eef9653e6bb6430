"""Time that the host takes for steps whose kernels take next to none, with Inductor, eager execution and plans.

    python bench/torch/host_time.py [MODEL ...] [--rounds 600]

One thread computes.  Steps of all ways take turns; the lower quartile of processor time counts.
"""
import argparse
import copy
import time

import lowtide.torch
import torch
from lowtide.torch.api.example_models import GPT2, _token_loss
from torch import nn


class Mlp(nn.Module):
    """Layers of ops that fuse, between small products."""

    def __init__(self, width=16, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
                                    for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x.square().mean()


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GPT2(64, 16, 32, 4, 2)

    def forward(self, *batch):
        return _token_loss(self.model, *batch)


MODELS = {"gpt": lambda: (Gpt(), tuple(torch.randint(0, 64, (2, 2, 16)))), "mlp": lambda: (Mlp(), (torch.randn(4, 16),))}
WAYS = {
    "Inductor": lambda module, _: torch.compile(module),
    "eager": lambda module, _: module,
    "plan, eager kernels": lambda module, batch: planned(module, batch, "eager"),
    "plan, fused kernels": lambda module, batch: planned(module, batch, "fused"),
}


def planned(module, batch, inner):
    return lowtide.torch.optimize(module, batch, budget="1GiB", inner=inner, reserve=0, fallback="error")


def step(module, run, batch):
    for parameter in module.parameters():
        parameter.grad = None
    run(*batch).backward()


def measured(name, rounds):
    torch.manual_seed(0)
    module, batch = MODELS[name]()
    made = {}
    for way, make in WAYS.items():
        mine = copy.deepcopy(module)
        made[way] = mine, make(mine, batch)
        for _ in range(8):  # until nothing is compiled or looked at any more
            step(*made[way], batch)
    times = {way: [] for way in made}
    for _ in range(rounds):
        for way, (mine, run) in made.items():
            began = time.process_time()
            step(mine, run, batch)
            times[way].append(time.process_time() - began)
    found = {way: sorted(times[way])[rounds // 4] * 1e6 for way in made}
    for way, took in found.items():
        print(f"| {name} | {way} | {took:.0f} | {took / found['Inductor']:.2f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all by default")
    parser.add_argument("--rounds", type=int, default=600)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| model | way | us | / Inductor's |\n| --- | --- | ---: | ---: |")
    for model in asked.models or MODELS:
        measured(model, asked.rounds)
