#!/usr/bin/env python3
"""Architectures of transformers, timm and torchvision in small: graphs, equality to eager execution, smallest budgets.

    build/venv/bin/python bench/torch/architectures.py [--only NAME] [--from I] [--to I] [--work N]

needs `tools/deps capture zoo`.  Each model trains two steps in eager execution and two under the smallest budget that
the default techniques reach; losses, gradients, buffers, parameters and the generator's state are compared bit by bit.
On one thread, in single precision, on this machine's CPU.
"""

from __future__ import annotations

import argparse
import copy
import logging
import os
import random
import sys
import warnings
from pathlib import Path

os.environ.setdefault("LOWTIDE_CACHE", "off")
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))

import lowtide.torch
import torch
from torch_architectures import available
from torch_suite import SUITE

STEPS = 2


def seeded(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def trained(module, batch, step):
    """Loss and gradients of each step, then all state."""
    seeded(7)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    seen = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        result = step(**batch)
        loss = result if isinstance(result, torch.Tensor) else result.loss
        loss.backward()
        seen += [loss.detach().clone(), *(None if p.grad is None else p.grad.clone() for p in module.parameters())]
        optimizer.step()
    return [*seen, *(t.clone() for t in module.state_dict().values()), torch.get_rng_state()]


def same(a, b):
    return len(a) == len(b) and all(
        x is None and y is None or x is not None and y is not None and torch.equal(x, y) for x, y in zip(a, b, strict=True))


def planned(module, batch, budget, work, **options):
    torch._dynamo.reset()
    seeded(1)
    mine = copy.deepcopy(module)
    before = len(lowtide.torch.reports())
    step = lowtide.torch.optimize(mine, kwargs=batch, budget=budget, costs="cpu", work=work, time=None, **options)
    return mine, step, lowtide.torch.reports()[before:]


def smallest(module, batch, work, **options):
    """The smallest budget that is found, or None where the model has no plan."""
    try:
        planned(module, batch, 1, work, fallback="error", **options)
    except lowtide.torch.BudgetError as error:
        return error.smallest
    except lowtide.torch.CaptureError:
        return None
    return None


def as_eager(reports):
    return all(r.exactness.as_eager for r in reports)


def row(name, work):
    package, make = SUITE[name]
    if not available(package, untangle=False):
        raise SystemExit(f"{package} is not installed: tools/deps capture zoo")
    seeded(0)
    module, batch = make()
    module.train()
    plain = copy.deepcopy(module)
    expected = trained(plain, batch, plain)
    least = smallest(module, batch, work)
    everything = smallest(module, batch, work, techniques="all")
    if least is None:
        return f"| {name} | no plan | | | | |"
    mine, step, reports = planned(module, batch, least, work)
    own = max(r.own_peak for r in reports)
    equal = "yes" if same(trained(mine, batch, step), expected) else "no" if as_eager(reports) else "as traced"
    share = f"{least / 1e6:.2f} MB ({least / own:.0%})"
    by_all = f"{everything / 1e6:.2f} MB ({everything / own:.0%})" if everything else ""
    return f"| {name} | {len(reports)} | {equal} | {own / 1e6:.2f} MB | {share} | {by_all} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=SUITE)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first row, from 0 on")
    parser.add_argument("--to", type=int, help="the row behind the last")
    parser.add_argument("--work", type=int, default=20_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print("| model | graphs | equal to eager | peak without a plan | smallest, default | smallest, all techniques |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in given.only or list(SUITE)[given.first : given.to]:
        try:
            print(row(name, given.work), flush=True)
        except Exception as error:  # one model is no reason to lose the table
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
