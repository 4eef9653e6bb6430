"""Steps of plans over fused kernels beside eager execution, Inductor, and Inductor's activation_memory_budget.

    python bench/torch/fused.py [MODEL ...] [--rounds 15] [--device cpu]

On a CPU one thread computes.  All ways of one model are compiled first; then each runs a step in turn, and the lower quartile of
its times counts (of the process on a CPU, so that other programs count less).  Peaks are measured, in per cent of eager execution's.
"""
import argparse
import copy
import functools
import sys
import time

import lowtide.torch
import torch
import torch.nn.functional as F
from lowtide.torch.api.example_models import GPT2, UNet, _image_loss, _token_loss
from torch import nn
from torch._dynamo.backends.registry import lookup_backend
from torch._functorch import config as functorch_config

SHARES = (60, 50)  # per cent of eager execution's peak


class WithLoss(nn.Module):
    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *batch):
        return self.loss(self.model, *batch)


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.first, self.second = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        same = stride == 1 and inputs == width
        self.past = nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(y + self.past(x))


def resnet():
    blocks = [Block(*sizes) for sizes in ((32, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1))]
    stem = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
    return WithLoss(model, _image_loss), (torch.randn(16, 3, 40, 40), torch.randint(0, 100, (16,)))


class ViT(nn.Module):
    def __init__(self, width=96, depth=4):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.places = nn.Parameter(torch.randn(1, 64, width) * 0.02)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True),
                                            depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.blocks(self.patches(x).flatten(2).transpose(1, 2) + self.places).mean(1))


class Autocast(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *batch):
        with torch.autocast(batch[0].device.type, torch.bfloat16):
            return self.model(*batch)


def gpt(dropout=0.0, autocast=False):
    tokens = torch.randint(0, 512, (2, 8, 128))
    model = WithLoss(GPT2(512, 128, 96, 4, 4, dropout), _token_loss)
    return Autocast(model) if autocast else model, (tokens[0], tokens[1])


MODELS = {
    "gpt": gpt,
    "gpt, dropout": functools.partial(gpt, 0.1),
    "gpt, dropout, autocast": functools.partial(gpt, 0.1, True),
    "resnet": resnet,
    "unet": lambda: (WithLoss(UNet(2, 12, 3), _image_loss), (torch.randn(2, 3, 64, 64), torch.randint(0, 2, (2, 64, 64)))),
    "vit": lambda: (WithLoss(ViT(), _image_loss), (torch.randn(8, 3, 32, 32), torch.randint(0, 100, (8,)))),
}  # fmt: skip


def step(module, run, batch):
    for parameter in module.parameters():
        parameter.grad = None
    loss = run(*batch)
    loss.backward()
    return loss.detach()


def peak(module, run, batch):
    """Of a step that finds no gradients."""
    for parameter in module.parameters():
        parameter.grad = None
    return lowtide.torch.measure_peak(step, module, run, batch, held=(module, batch))


def ways(own):
    """(name, of a module and its batch the callable), the plans' budgets in bytes; own: eager execution's peak."""
    def inductor(module, _, share=None):
        found = lookup_backend("inductor")

        def compile_one(graph, inputs):
            with functorch_config.patch(activation_memory_budget=1.0 if share is None else share):
                return found(graph, inputs)

        return torch.compile(module, backend=compile_one)

    def planned(module, batch, budget, inner):
        return lowtide.torch.optimize(module, batch, budget=budget, inner=inner, reserve=0, fallback="error",
                                      techniques=["recompute", "in_place"])

    yield "eager", lambda module, _: module
    yield "Inductor", inductor
    yield "Inductor, activation_memory_budget .5", functools.partial(inductor, share=0.5)
    for inner in ("eager", "fused"):
        yield f"{inner}, no plan", functools.partial(planned, budget=2 * own, inner=inner)
        for share in SHARES:
            yield f"{inner}, {share} %", functools.partial(planned, budget=own * share // 100, inner=inner)


def measured(name, rounds, device):
    torch.manual_seed(0)
    module, batch = MODELS[name]()
    module, batch = module.to(device), tuple(t.to(device) for t in batch)
    step(module, module, batch)
    own = peak(module, module, batch)
    made = {}
    for way, make in ways(own):
        mine = copy.deepcopy(module)
        began = time.perf_counter()
        try:
            run = make(mine, batch)
            step(mine, run, batch)
        except lowtide.torch.BudgetError as error:
            print(f"{name}: {way}: {error}", file=sys.stderr)
            continue
        took = time.perf_counter() - began
        torch.manual_seed(1)
        loss = step(mine, run, batch).item()
        gradients = [p.grad.clone() for p in mine.parameters()]
        made[way] = mine, run, took, loss, gradients, peak(mine, run, batch)
    clock = time.process_time if device == "cpu" else time.perf_counter
    times = {way: [] for way in made}
    for _ in range(rounds):
        for way, (mine, run, *_) in made.items():
            began = clock()
            step(mine, run, batch)
            if device != "cpu":
                torch.cuda.synchronize()
            times[way].append(clock() - began)
    base = sorted(times["Inductor"])[rounds // 4]
    print(f"\n{name}: {own / 2**20:.1f} MiB, Inductor {base * 1e3:.2f} ms\n\n| way | time / Inductor's | peak, % | compiled in s | bits |")
    print("| --- | ---: | ---: | ---: | --- |")
    for way, (_, _, took, loss, gradients, rise) in made.items():
        like = [other for other in ("fused, no plan", "eager, no plan", "Inductor") if other in made and other != way
                and loss == made[other][3] and all(map(torch.equal, gradients, made[other][4]))]
        ratio = sorted(times[way])[rounds // 4] / base
        print(f"| {way} | {ratio:.2f} | {100 * rise / own:.1f} | {took:.1f} | {'as ' + ' and '.join(like) if like else ''} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all by default")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    if asked.device == "cpu":
        torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 64
    for model in asked.models or MODELS:
        measured(model, asked.rounds, asked.device)
