"""Training steps that update parameters after the backward and within it: peaks, times, and whether a bit changes.

    python bench/torch/updates.py [MODEL ...] [--out build/bench/torch-updates.md]

writes a table. Rows: the optimizer's step after the backward, hooks that step an optimizer of each parameter as its
gradient has come (as PyTorch's tutorial has it), Lowtide with update="step" and "backward". Peaks are measured above what
is there before the forward, and before the backward with the step; the optimizer's state is there by then. Times are
medians of steps that take turns.
"""
import argparse
import copy
import os
import statistics
import sys
import time
from pathlib import Path

os.environ["LOWTIDE_CACHE"] = "off"

import lowtide.torch
import torch
from lowtide.torch.device.meter import peak_rise
from models import _gpt
from torch import nn

OPTIMIZERS = {
    "AdamW fused": lambda p: torch.optim.AdamW(p, 1e-3, fused=True),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, 1e-3, foreach=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 1e-3),
    "SGD nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
}
OURS = {"costs": "flops", "fallback": "error"}


class Mlp(nn.Module):
    def __init__(self, width=512, layers=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.gelu(layer(x))
        return x.square().mean()


MODELS = {"mlp": ("MLP, 8 x 512, 16 rows", lambda: (Mlp(), (torch.randn(16, 512),))),
          "gpt": (_gpt("GPT", 2, 16, 256, 4, 8).title, _gpt("GPT", 2, 16, 256, 4, 8).build)}


class Loop:
    """A step of training under one way to make its updates."""

    def __init__(self, name, module, inputs, make):
        self.module, self._inputs = copy.deepcopy(module), inputs
        if name == "hooks":
            optimizers = {p: make([p]) for p in self.module.parameters()}

            def update(p):
                optimizers[p].step()
                optimizers[p].zero_grad()

            for p in optimizers:
                p.register_post_accumulate_grad_hook(update)
            self._optimizer, self._run = None, self.module
            return
        self._optimizer = make(self.module.parameters())
        self._run = self.module if name == "plain" else lowtide.torch.optimize(
            self.module, inputs, budget="100%", optimizer=self._optimizer, update=name, **OURS)

    def forward(self):
        return self._run(*self._inputs)

    def backward(self, loss):
        loss.backward()
        if self._optimizer:
            self._optimizer.step()

    def end(self):
        if self._optimizer:
            self._optimizer.zero_grad()

    def step(self):
        self.backward(self.forward())
        self.end()

    def peaks(self):
        """Of the step, and of its backward and updates."""
        whole = peak_rise(lambda: self.backward(self.forward()))
        self.end()
        loss = self.forward()
        late = peak_rise(lambda: self.backward(loss))
        self.end()
        return whole, late


def rows(title, build, optimizer, make, rounds):
    torch.manual_seed(0)
    module, inputs = build()
    loops = {}
    torch._dynamo.reset()
    for name in ("plain", "hooks", "step", "backward"):
        loops[name] = Loop(name, module, inputs, make)
        for _ in range(4):
            torch.manual_seed(1)
            loops[name].step()
    equal = {name: all(map(torch.equal, loop.module.state_dict().values(), loops["plain"].module.state_dict().values()))
             for name, loop in loops.items()}
    peaks = {name: loop.peaks() for name, loop in loops.items()}
    times = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            began = time.perf_counter()
            loop.step()
            times[name].append(time.perf_counter() - began)
    words = {"plain": "step after it", "hooks": "hooks", "step": 'Lowtide, "step"', "backward": 'Lowtide, "backward"'}
    for name, (whole, late) in peaks.items():
        yield (f"| {title} | {optimizer} | {words[name]} | {whole / 1e6:.2f} | {late / 1e6:.2f} | "
               f"{late / peaks['plain'][1]:.2f} | "
               f"{100 * (statistics.median(map(lambda a, b: a / b, times[name], times['plain'])) - 1):+.0f} | "
               f"{'yes' if equal[name] else 'no'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=50, help="of timed steps (50)")
    parser.add_argument("--out", type=Path, default=Path("build/bench/torch-updates.md"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = ["| | optimizer | updates | step, MB | backward and step, MB | ratio | time, % | equal |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |"]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for name in arguments.models or MODELS:
        title, build = MODELS[name]
        for optimizer, make in OPTIMIZERS.items():
            for line in rows(title, build, optimizer, make, arguments.rounds):
                table.append(line)
                print(line, file=sys.stderr, flush=True)
    arguments.out.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
