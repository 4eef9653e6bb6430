"""Smallest budgets of language models with AdamW: by recomputation, with all techniques, and with the state on the host.

    python bench/torch/host_states.py [--out build/bench/torch-host-states.md]

writes a table. Each budget is the smallest that Lowtide finds, asked for, run, and measured; the state counts in all of them.
Without a GPU the host is emulated in memory that PyTorch does not count; the link is an A100's, 25 GB/s.
"""
import argparse
import copy
import os
import sys
import warnings
from pathlib import Path

os.environ["LOWTIDE_CACHE"] = "off"

import lowtide.torch
import parts
import torch
from lowtide.torch.device.host import is_on_host
from lowtide.torch.device.meter import bytes_held, peak_rise

LINK = "25GB/s,10us"
SIZES = {"256 words, 6 layers": (256, 6), "8,192 words, 2 layers": (8192, 2)}
OPTIONS = {"costs": "cpu", "time": 3, "fallback": "error"}


def optimized(module, optimizer, inputs, budget, **options):
    run = lowtide.torch.optimize(module, inputs, budget=budget, optimizer=optimizer, **OPTIONS, **options)

    def step():
        run(*inputs).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def in_one_call(module, optimizer, inputs, budget, **options):
    run = lowtide.torch.step(module, optimizer, inputs, budget=budget, **{k: v for k, v in OPTIONS.items() if k != "fallback"},
                             **options)
    return lambda: run(*inputs)


WAYS = {
    "optimize, recomputation": (optimized, {"techniques": "recompute"}),
    "optimize, all": (optimized, {"techniques": "all", "link": LINK}),
    "step, all": (in_one_call, {"techniques": "all", "link": LINK}),
    "step, all, state on the host": (in_one_call, {"techniques": "all", "link": LINK, "state_home": "host"}),
}


def smallest(module, inputs, make, options):
    budget = "1%"
    while True:
        torch._dynamo.reset()
        mine = copy.deepcopy(module)
        optimizer = torch.optim.AdamW(mine.parameters(), fused=True)
        try:
            step = make(mine, optimizer, inputs, budget, **options)
            return mine, optimizer, step, lowtide.torch.reports()[-1]
        except lowtide.torch.BudgetError as error:
            budget = error.smallest


def measured(module, optimizer, step, inputs):
    """The peak of a step after the first, all that is on the device counted."""
    step()
    state = [t for entry in optimizer.state.values() for t in entry.values() if torch.is_tensor(t) and not is_on_host(t)]
    return bytes_held(module, inputs, state) + peak_rise(step)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/bench/torch-host-states.md"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table = ["| | | budget, MB | measured, MB | ratio | time by the plan, % |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for size, (parts.WORDS, parts.LAYERS) in SIZES.items():
        torch.manual_seed(0)
        inputs = tuple(torch.randint(0, parts.WORDS, (parts.BATCH, parts.TOKENS)) for _ in range(2))
        module, first = parts.Gpt(), None
        for name, (make, options) in WAYS.items():
            mine, optimizer, step, report = smallest(module, inputs, make, options)
            peak = measured(mine, optimizer, step, inputs)
            first = first or peak
            table.append(f"| {size} | {name} | {report.budget / 1e6:.2f} | {peak / 1e6:.2f} | {peak / first:.2f} | "
                         f"{100 * report.overhead:+.1f} |")
            print(table[-1], file=sys.stderr, flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
