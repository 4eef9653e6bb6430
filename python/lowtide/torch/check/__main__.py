"""Measure what of lowtide.torch works on this machine's card: budgets, bits, predictions.

    python -m lowtide.torch.check --out results

Sections run one after the other, the most important first, each in a limit of its own.  Results are printed as they come and
written to results.jsonl; at the end results.json has all of them, and a table says what is not as it should be.  Without a
GPU it runs tiny models on the CPU, which shows whether the check itself works.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch

from .parent import run_sections
from .report import line, table, verdict
from .section import Context, Result
from .table import SECTIONS
from .worker import ENVIRONMENT, events_to_parent, make_repeatable, run

_SLOW = 5.0  # how many times the limits of a GPU a CPU gets


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    names = [section.name for section in SECTIONS]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(prog="python -m lowtide.torch.check", description=(__doc__ or "").splitlines()[0],
                                     epilog=f"Sections: {', '.join(names)}.")
    parser.add_argument("--out", type=Path, default=Path("lowtide-check"), metavar="FOLDER",
                        help="where results.json, results.jsonl and worker.log go (default: %(default)s)")
    parser.add_argument("--sections", default=",".join(names), metavar="A,B,...", help="run these, in this order (default: all)")
    parser.add_argument("--seconds", type=float, default=480, help="in all (default: %(default)g)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default=device, help="(default here: %(default)s)")
    parser.add_argument("--scale", choices=("full", "tiny"), help="of the models (default: full on a GPU, tiny on a CPU)")
    parser.add_argument("--tests", type=Path, metavar="FOLDER", help="tests/python of a checkout, for the section suites")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.scale = options.scale or ("full" if options.device == "cuda" else "tiny")
    options.sections = options.sections.split(",")
    unknown = [name for name in options.sections if name not in names]
    if unknown:
        parser.error(f"no section {unknown[0]!r}; there are {', '.join(names)}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here: --device cpu runs the check on tiny models")
    if options.tests and not options.tests.is_dir():
        parser.error(f"--tests: there is no folder {options.tests}")
    return options


def _worker(options: argparse.Namespace) -> int:
    tell = events_to_parent()
    make_repeatable()
    if options.device == "cpu":
        torch.set_num_threads(1)
    context = Context(options.device, options.scale == "tiny", options.tests, lambda result: tell({"result": result}))
    known = {section.name: section for section in SECTIONS}
    return run([known[name] for name in options.sections], context, tell, options.seconds, _factor(options))


def _factor(options: argparse.Namespace) -> float:
    return _SLOW if options.device == "cpu" else 1.0


def _command(options: argparse.Namespace, names: list[str], seconds: float) -> list[str]:
    command = [sys.executable, "-m", "lowtide.torch.check", "--worker", "--device", options.device, "--scale", options.scale,
               "--sections", ",".join(names), "--seconds", str(seconds)]
    return command + (["--tests", str(options.tests.resolve())] if options.tests else [])


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns 0 if all is as it should be, 1 if something is not."""
    options = _parse(arguments)
    if options.worker:
        return _worker(options)
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    results: list[Result] = []
    known = {section.name: section for section in SECTIONS}
    with (options.out / "results.jsonl").open("w") as lines, (options.out / "worker.log").open("w") as log, \
            tempfile.TemporaryDirectory(prefix="lowtide-check-") as cache:

        def hear(result: Result) -> None:
            results.append(result)
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            print(line(result, time.monotonic() - began, shutil.get_terminal_size((120, 24)).columns), flush=True)

        # times that were measured before, maybe beside other work, are not believed
        run_sections([known[name] for name in options.sections], lambda names, left: _command(options, names, left),
                     options.seconds, hear, factor=_factor(options), environment={**ENVIRONMENT, "LOWTIDE_CACHE": cache}, log=log)
    seconds = round(time.monotonic() - began, 1)
    (options.out / "results.json").write_text(json.dumps({"seconds": seconds, "device": options.device, "scale": options.scale,
                                                          "results": results}, indent=1) + "\n")
    print("", table(results), "", verdict(results), f"{seconds:.0f} s; all results: {options.out / 'results.json'}", sep="\n")
    return int(any(result["faults"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
