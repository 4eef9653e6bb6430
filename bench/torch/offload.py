"""Training steps whose activations go to the host: peaks on the device, and bits.

    python bench/torch/offload.py [--out build/bench/torch-offload.md]

writes a table. Rows of two small GPTs: eager; PyTorch's `save_on_cpu`; Lowtide with `offload` alone within the smallest budget
that it finds, and with recomputation and writing in place beside it. Peaks are measured above what is there before the
forward. Without a GPU the host is emulated: by Lowtide as ever, for `save_on_cpu` by hooks that copy as it does, to memory
that PyTorch does not count. The link is an A100's, 25 GB/s; the time is by the plan.
"""
import argparse
import copy
import os
import sys
import warnings
from pathlib import Path

os.environ["LOWTIDE_CACHE"] = "off"

import lowtide.torch
import numpy as np
import parts
import torch
from lowtide.torch.device.meter import peak_rise

LINK = "25GB/s,10us"
ALONE, JOINT = ["offload"], ["recompute", "in_place", "offload"]
SIZES = {"256 words, 6 layers": (256, 6), "8,192 words, 2 layers": (8192, 2)}


def saving_on_cpu():
    """save_on_cpu of a step that runs on the CPU itself."""
    def pack(t):
        return np.array(t.detach().contiguous().view(-1).view(torch.uint8).numpy()), t.shape, t.dtype

    def unpack(packed):
        memory, shape, dtype = packed
        return torch.from_numpy(memory).clone().view(dtype).view(shape)

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def step_of(run, inputs):
    def step():
        loss = run(*inputs)
        loss.backward()
        return loss.detach()

    return step


def saved_on_cpu(module, inputs):
    def step():
        with saving_on_cpu():
            loss = module(*inputs)
        loss.backward()
        return loss.detach()

    return step


def planned(module, inputs, techniques):
    """The step within the smallest budget that was found."""
    options = {"techniques": techniques, "link": LINK, "costs": "measured", "time": 3, "fallback": "error"}
    budget = "1%"
    while True:
        torch._dynamo.reset()
        try:
            return step_of(lowtide.torch.optimize(module, inputs, budget=budget, **options), inputs)
        except lowtide.torch.BudgetError as error:
            budget = error.smallest


def ways(module, inputs):
    """Name -> a module, its step from the forward to the gradients, and the time that the plan adds."""
    for name, make in (("eager", lambda m: step_of(m, inputs)), ("save_on_cpu", lambda m: saved_on_cpu(m, inputs))):
        mine = copy.deepcopy(module)
        yield name, mine, make(mine), None
    for name, techniques in (("offload alone", ALONE), ("default techniques of a GPU", JOINT)):
        mine = copy.deepcopy(module)
        step = planned(mine, inputs, techniques)
        yield f"Lowtide, {name}", mine, step, lowtide.torch.reports()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/bench/torch-offload.md"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table = ["| | | peak, MB | ratio | to the host, MB | time by the plan, % | bits equal |",
             "| --- | --- | ---: | ---: | ---: | ---: | --- |"]
    for size, (parts.WORDS, parts.LAYERS) in SIZES.items():
        torch.manual_seed(0)
        inputs = tuple(torch.randint(0, parts.WORDS, (parts.BATCH, parts.TOKENS)) for _ in range(2))
        expected, eager = None, None
        for name, module, step, report in ways(parts.Gpt(), inputs):
            seen = [step(), *(p.grad for p in module.parameters())]
            module.zero_grad()
            peak = peak_rise(step)
            expected, eager = expected or seen, eager or peak
            same = all(map(torch.equal, seen, expected))
            away = f"{sum(report.offloaded.values()) / 1e6:.1f}" if report else ""
            table.append(f"| {size} | {name} | {peak / 1e6:.1f} | {peak / eager:.2f} | {away} | "
                         f"{f'{100 * report.overhead:+.1f}' if report else ''} | {'yes' if same else 'no'} |")
            print(table[-1], file=sys.stderr, flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
