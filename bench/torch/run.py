"""Training steps under no plan, torch.utils.checkpoint, activation_memory_budget, and Lowtide at the same peaks.

    python bench/torch/run.py [MODEL ...] [--device cuda] [--out build/bench/torch]

writes OUT.csv, OUT.md and OUT.png. Needs torch and matplotlib.
"""
import argparse
import contextlib
import csv
import datetime
import os
import shlex
import sys
from pathlib import Path

os.environ["LOWTIDE_CACHE"] = "off"  # every plan is made here, in the time that is said

import lowtide.torch
import torch
from lowtide.torch.device.meter import bytes_held
from measure import Step, difference, take_turns
from models import MODELS
from report import COLUMNS, peaks_of, write
from torch._dynamo.backends.registry import lookup_backend
from torch._functorch import config as functorch_config

RATIOS = (1.0, 0.5, 0.3, 0.15, 0.05, 0.0)
# Lowtide's rows: name -> options
OURS = {
    "given": {"order": "given", "costs": "flops"},
    "free": {"order": "free", "costs": "flops"},
    "timed": {"order": "free", "costs": "auto"},
}


def eager(module):
    return module


def checkpointed(module):
    module.checkpointed = True
    return module


def upstream(backend):
    """torch.compile with a backend that is a new object each time, or Dynamo would take another row's code."""
    found = lookup_backend(backend)
    return lambda module: torch.compile(module, backend=lambda graph, inputs: found(graph, inputs))


def ratio_of(ratio):
    return lambda: functorch_config.patch(activation_memory_budget=ratio)


def peers(backend):
    """(name, setting, how, around) of every row that is not ours."""
    yield "no plan", "", eager, contextlib.nullcontext
    yield "checkpoint", "a layer", checkpointed, contextlib.nullcontext
    for ratio in RATIOS:
        yield "activation_memory_budget", f"{ratio:g}", upstream(backend), ratio_of(ratio)


class Bench:
    def __init__(self, name, arguments):
        self._name, self._arguments = name, arguments
        torch._dynamo.reset()
        torch.manual_seed(0)
        module, inputs = MODELS[arguments.device][name].build()
        self._module, self._inputs = module.to(arguments.device), tuple(t.to(arguments.device) for t in inputs)
        self._held = bytes_held(self._module, self._inputs)
        self._steps, self._rows = {}, []
        self._own = None  # what activation_memory_budget computes at its first ratio, where nothing runs again

    def run(self):
        for method, setting, how, around in peers(self._arguments.upstream):
            self._add(method, setting, "", Step(self._module, self._inputs, how, around))
        for peak, beside in peaks_of(self._rows).items():
            for setting in OURS:
                self._ours(setting, beside, peak)
        self._smallest()
        times = take_turns(self._steps, self._arguments.seconds, self._arguments.rounds)
        for row in self._rows:
            key = row["method"], row["setting"], row["beside"]
            if key in times.of:
                row["ms"] = f"{1000 * times.median(key):.3f}"
                row["time"] = f"{100 * (times.ratio(key, ('no plan', '', '')) - 1):.2f}"
        return self._rows

    def _row(self, method, setting, beside, **cells):
        row = dict.fromkeys(COLUMNS, "") | {"model": self._name, "method": method, "setting": setting,
                                            "beside": beside, "held": self._held} | cells
        self._rows.append(row)
        print("  ".join(f"{key} {value}" for key, value in row.items() if value != ""), flush=True)
        return row

    def _add(self, method, setting, beside, step, **cells):
        """A row of what a step that has been compiled takes and computes."""
        if not self._steps:
            self._expected, self._operations = step.results, step.operations()
        differs, off = difference(step.results, self._expected)
        if method == "activation_memory_budget":
            self._own = self._own or step.results
            _, wrong = difference(step.results, self._own)
            cells["wrong"] = f"{wrong:.1e}" if wrong else ""
        step.results = None
        self._steps[method, setting, beside] = step
        overhead = 100 * (step.operations() / self._operations - 1)
        self._row(method, setting, beside, operations=f"{overhead:.3f}", peak=step.peak(),
                  equal="no" if differs else "yes", differs=differs, off=f"{off:.1e}" if off else "", **cells)

    def _ours(self, setting, beside, peak):
        """A row of ours that is measured within `peak` bytes, what kernels take for themselves set aside."""
        step = report = None
        reserve = 0
        for _ in range(4):
            def plan(module, reserve=reserve):
                return lowtide.torch.optimize(module, self._inputs, budget=self._held + peak, reserve=reserve,
                                              time=self._arguments.time, **OURS[setting])

            try:
                step = Step(self._module, self._inputs, plan, contextlib.nullcontext)
            except lowtide.torch.BudgetError as error:
                if step is None:
                    self._row("lowtide", setting, beside, budget=peak, status="no plan", failure=str(error))
                    return
                break
            report = lowtide.torch.reports()[-1]
            over = step.peak() - peak
            if over <= 0 or beside == "smallest":
                break
            reserve += over
        self._add("lowtide", setting, beside, step, budget=peak, reserve=report.resident or "", status=report.status,
                  predicted=report.peak - report.inputs - report.resident,
                  bound=f"{100 * (report.bound / report.own_duration - 1):.3f}")

    def _smallest(self):
        """A row at the smallest budget for which a plan is found."""
        torch.manual_seed(1)
        low, high = self._held, self._held + min(row["peak"] for row in self._rows)
        for _ in range(5):
            middle = (low + high) // 2
            try:
                lowtide.torch.optimize(self._module, self._inputs, budget=middle, time=self._arguments.time, reserve=0,
                                       **OURS["free"])
                high = lowtide.torch.reports()[-1].peak
            except lowtide.torch.BudgetError as error:
                low = max(low, middle, min(error.floor, high))
        for _ in range(3):  # what was found once in a second may not be found again
            self._ours("free", "smallest", high - self._held)
            if self._rows[-1]["status"] != "no plan":
                break
            self._rows.pop()
            high += (high - self._held) // 50


def machine(device):
    """The machine in words: cores or GPU, and versions."""
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "CPU") if Path("/proc/cpuinfo").exists() else "CPU"
    return f"{torch.get_num_threads()} of {os.cpu_count()} cores of an {model}, torch {torch.__version__}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS['cpu'])} (all)")
    parser.add_argument("--device", choices=list(MODELS), default="cpu")
    parser.add_argument("--time", type=float, default=1.0, help="seconds for each plan (1)")
    parser.add_argument("--seconds", type=float, default=30, help="seconds of timed steps for each model (30)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of timed steps at least (5)")
    parser.add_argument("--threads", type=int, default=1, help="of the step on a CPU (1)")
    parser.add_argument("--upstream", default="aot_eager_decomp_partition", metavar="BACKEND",
                        help="what runs activation_memory_budget; inductor, too (aot_eager_decomp_partition)")
    parser.add_argument("--out", type=Path, default="build/bench/torch", help="without .csv, .md, .png")
    arguments = parser.parse_args()
    known = MODELS[arguments.device]
    for name in arguments.models:
        if name not in known:
            parser.error(f"there is no model {name!r}; known are {', '.join(known)}")
    torch.set_num_threads(arguments.threads)
    torch._dynamo.config.recompile_limit = 1000  # one module's code is compiled for every row
    torch._dynamo.config.accumulated_recompile_limit = 1000
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "bench/torch/run.py", *sys.argv[1:]])
    date, words = datetime.date.today().isoformat(), machine(arguments.device)
    rows, titles = [], {}
    for name in arguments.models or known:
        rows += Bench(name, arguments).run()
        titles[name] = known[name].title
        with arguments.out.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        write(rows, arguments.out, titles, f"{command}` on {words}", date, arguments.upstream)
    print(arguments.out.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
