"""Training steps with ops in place and without: their peaks, the smallest budgets found, and whether a bit changes.

    python bench/torch/in_place.py [MODEL ...] [--out build/bench/torch-in-place.md]

writes a table. Peaks are measured, above inputs, parameters and buffers, gradients included.
"""
import argparse
import contextlib
import os
import sys
from pathlib import Path

os.environ["LOWTIDE_CACHE"] = "off"

import torch  # noqa: E402

import lowtide.torch  # noqa: E402
from lowtide.torch.meter import bytes_held  # noqa: E402
from measure import Step, difference  # noqa: E402
from models import MODELS, _gpt  # noqa: E402

OF_ITS_OWN = {"gpt2-words": _gpt("GPT", 8, 64, 64, 2, 4, vocabulary=8192)}
OPTIONS = {"costs": "flops", "time": None, "work": 100_000, "fallback": "error"}


def step_of(module, inputs, techniques, budget, order):
    """A compiled step, and its peak by the plan; the smallest budget that was found if this one cannot be kept."""
    torch._dynamo.reset()
    try:
        step = Step(module, inputs, lambda m: lowtide.torch.optimize(m, inputs, budget=budget, order=order,
                                                                     techniques=techniques, **OPTIONS),
                    contextlib.nullcontext)
    except lowtide.torch.BudgetError as error:
        return None, error.smallest
    return step, lowtide.torch.reports()[-1].peak


def row(name, model):
    torch.manual_seed(0)
    module, inputs = model.build()
    held = bytes_held(module, inputs)
    plain = Step(module, inputs, lambda m: m, contextlib.nullcontext)
    peaks, smallest, equal = {}, {}, True
    for place in ("", "in_place"):
        step, planned = step_of(module, inputs, place or "recompute", "100%", "given")
        peaks[place] = step.peak()
        assert abs(peaks[place] + held - planned) <= 64 + planned // 100, f"{name}: {peaks[place]} measured"
        equal = equal and not difference(step.results, plain.results)[0]
        _, smallest[place] = step_of(module, inputs, f"recompute,{place}" if place else "recompute", held + 1, "free")
        step, planned = step_of(module, inputs, f"recompute,{place}" if place else "recompute", smallest[place], "free")
        if step is not None:
            assert step.peak() + held <= planned + 64 + planned // 100, f"{name}: the smallest budget is not kept"
            equal = equal and not difference(step.results, plain.results)[0]
    def kilo(size):
        return f"{size / 1e3:,.0f}"

    least = {place: size - held for place, size in smallest.items()}
    return (f"| {name}: {model.title} | {kilo(peaks[''])} | {kilo(peaks['in_place'])} | "
            f"{peaks['in_place'] / peaks['']:.2f} | {kilo(least[''])} | {kilo(least['in_place'])} | "
            f"{least['in_place'] / least['']:.2f} | {'yes' if equal else 'no'} |")


def main():
    models = MODELS["cpu"] | OF_ITS_OWN
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(models))
    parser.add_argument("--out", type=Path, default=Path("build/bench/torch-in-place.md"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = ["| | peak, kB | in place | ratio | smallest budget, kB | in place | ratio | equal |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    for name in arguments.models or models:
        rows.append(row(name, models[name]))
        print(rows[-1], file=sys.stderr, flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
