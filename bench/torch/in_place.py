"""Training steps with ops in place and without: their peaks, the smallest budgets found, and whether a bit changes.

    python bench/torch/in_place.py [--zoo] [MODEL ...] [--out build/bench/torch-in-place.md]

writes a table; --zoo: of the architectures that the long tests train (tools/deps zoo installs their packages), with a row
as soon as it is there. Peaks are measured, above inputs, parameters and buffers, gradients included. Steps are compared
with eager execution, or with the traced step where tracing alone changes bits.
"""
import argparse
import contextlib
import os
import sys
from pathlib import Path

os.environ["LOWTIDE_CACHE"] = "off"

import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python"))

import lowtide.torch
from lowtide.torch.device.meter import bytes_held
from measure import Step, difference
from models import MODELS, Model, _gpt
from torch_architectures import ARCHITECTURES, available

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
    plain = [Step(module, inputs, lambda m: m, contextlib.nullcontext)]
    peaks, smallest, equal = {}, {}, True

    def is_equal(step):
        if len(plain) == 1 and difference(step.results, plain[0].results)[0]:
            torch._dynamo.reset()
            plain.append(Step(module, inputs, lambda m: torch.compile(m, backend="aot_eager"), contextlib.nullcontext))
        return not difference(step.results, plain[-1].results)[0]

    for place in ("", "in_place"):
        step, planned = step_of(module, inputs, place or "recompute", "100%", "given")
        peaks[place] = step.peak()
        assert peaks[place] + held <= planned + 64 + planned // 100, f"{name}: {peaks[place]} measured"
        equal = equal and is_equal(step)
        _, smallest[place] = step_of(module, inputs, f"recompute,{place}" if place else "recompute", held + 1, "free")
        step, planned = step_of(module, inputs, f"recompute,{place}" if place else "recompute", smallest[place], "free")
        if step is not None:
            assert step.peak() + held <= planned + 64 + planned // 100, f"{name}: the smallest budget is not kept"
            equal = equal and is_equal(step)
    def kilo(size):
        return f"{size / 1e3:,.1f}" if size < 100_000 else f"{size / 1e3:,.0f}"

    least = {place: size - held for place, size in smallest.items()}
    return (f"| {model.title} | {kilo(peaks[''])} | {kilo(peaks['in_place'])} | "
            f"{peaks['in_place'] / peaks['']:.2f} | {kilo(least[''])} | {kilo(least['in_place'])} | "
            f"{least['in_place'] / least['']:.2f} | {'yes' if equal else 'no'} |")


def zoo():
    """The architectures whose packages are installed."""
    return {name: Model(name, make) for name, (package, make) in ARCHITECTURES.items()
            if package == "plain" or available(package)}


def main():
    models = {name: Model(f"{name}: {model.title}", model.build) for name, model in (MODELS["cpu"] | OF_ITS_OWN).items()}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(models))
    parser.add_argument("--zoo", action="store_true", help="architectures of timm, torchvision, transformers, and plain ones")
    parser.add_argument("--out", type=Path, default=Path("build/bench/torch-in-place.md"))
    arguments = parser.parse_args()
    models = zoo() if arguments.zoo else models
    torch.set_num_threads(1)
    torch._dynamo.config.allow_rnn = True
    rows = ["| | peak, kB | in place | ratio | smallest budget, kB | in place | ratio | equal |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for name in arguments.models or models:
        try:
            rows.append(row(name, models[name]))
        except (AssertionError, lowtide.torch.CaptureError) as error:  # the others are worth their rows
            rows.append(f"| {models[name].title} | {error or 'several regions'} | | | | | | |")
        print(rows[-1], file=sys.stderr, flush=True)
        arguments.out.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
