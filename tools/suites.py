"""Runs the Python suites of a build folder, each in a process of its own, as many at a time as there are jobs.

    build/venv/bin/python tools/suites.py build/release build/suite [--jobs 2] [--timeout 600] [suite...]

A suite that needs torch is forked from one process that has imported it, which takes longer than most such
suites. Writes release.cli.test_x.xml into the second folder for tests/cli/test_x.py; what a suite that fails
printed is shown at once. Exits with 1 if one failed. Suites in a folder `long` run with LOWTIDE_TEST_SCALE of 10 or
more alone.
"""
import argparse
import gc
import importlib
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
NOTHING_TO_RUN = 5  # Pytest's word for it: where a suite's own import is skipped, as without torch.
IMPORTED = ["numpy", "torch", "torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor.compile_fx", "lowtide.torch",
            "torch.export._trace", "torch.distributed.tensor.experimental"]  # the last two with the first graph that is compiled
# Those that take longest, for a folder that has no times of an earlier run.
LONGEST = ["python.test_torch_matrix", "python.test_torch_fsdp", "python.test_torch_ddp", "python.test_torch_fused",
           "python.test_torch_fused_sizes", "python.test_jax", "python.test_torch_transforms", "python.test_torch_collectives",
           "python.test_capture_mesh", "report.test_pages", "cli.test_signals", "python.test_torch_offload", "python.test_training_examples"]


def suites() -> list[Path]:
    """All that run: those in a folder `long` in long runs alone."""
    long = int(os.environ.get("LOWTIDE_TEST_SCALE", "1")) >= 10
    return [suite for suite in ROOT.glob("tests/**/test_*.py") if long or suite.parent.name != "long"]


def label(suite: Path) -> str:
    """Two folders may have suites of one name."""
    path, tests = suite.resolve(), ROOT / "tests"
    return ".".join((path.relative_to(tests) if tests in path.parents else path.relative_to(path.parents[1])).with_suffix("").parts)


def needs_torch(suite: Path) -> bool:
    return bool(re.search(r'^torch = pytest\.importorskip\("torch"\)|^import torch$', suite.read_text(), re.MULTILINE))


def import_torch():
    for name in IMPORTED:
        try:
            importlib.import_module(name)
        except ImportError:
            break
    # Nothing of this is garbage in any suite: collections, of which each measured peak takes one, need not
    # go through it again.
    gc.collect()
    gc.freeze()


def arguments(suite: Path, results: Path) -> list[str]:
    # Where pytest keeps what is logged, PyTorch's tracer makes a text of every graph on its way, for nobody to read.
    return ["-q", "-p", "no:cacheprovider", "-p", "no:logging", f"--junitxml={results}", str(suite)]


def start(suite: Path, results: Path, output) -> int:
    """Pytest in a process of its own, a copy of this one where the suite needs torch; returns its id.

    Without subprocess, which waits by itself for processes that it was not asked about again: main would then
    never hear of their end.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.setsid()
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if not needs_torch(suite):
            os.execv(sys.executable, [sys.executable, "-m", "pytest", *arguments(suite, results)])
        import pytest

        code = int(pytest.main(arguments(suite, results)))
    except BaseException:  # there is nobody to raise it to
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def write_failure(results: Path, name: str, why: str):
    """A suite that ended before it wrote its results is one failure."""
    suite = ElementTree.Element("testsuite", name=name, tests="1", failures="1", errors="0", skipped="0")
    case = ElementTree.SubElement(suite, "testcase", classname=name, name="the whole suite", time="0")
    ElementTree.SubElement(case, "failure", message=why)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.ElementTree(root).write(results)


def told(results: Path) -> bool:
    try:
        suites = ElementTree.parse(results).iter("testsuite")
        return any(int(suite.get("failures")) + int(suite.get("errors")) for suite in suites)
    except (OSError, ElementTree.ParseError):
        return False


def longest_first(suites, times: Path):
    """By what each took the last time: one that starts last keeps the other jobs waiting."""
    took = {name: 100.0 - place for place, name in enumerate(LONGEST)}
    if times.exists():
        took |= {name: float(seconds) for name, seconds in (line.rsplit(" ", 1) for line in times.read_text().splitlines())}
    return sorted(suites, key=lambda suite: -took.get(label(suite), 50 if needs_torch(suite) else 20))


def main() -> int:
    # A shell that starts this in the background lets its children ignore Ctrl-C; some suites send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=600, help="seconds a suite")
    parser.add_argument("suites", nargs="*", type=Path)
    given = parser.parse_intermixed_args()
    build, folder = given.build.resolve(), given.results.resolve()
    os.chdir(ROOT)
    os.environ |= {"LOWTIDE_BUILD": build.name, "LOWTIDE_BIN": str(build / "lowtide"), "PYTHONDONTWRITEBYTECODE": "1",
                   "LOWTIDE_BENCH": str(build / "lowtide_bench"), "LOWTIDE_SOURCE_DIR": str(ROOT),
                   "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # those of hypothesis and others would be compiled for every suite
    # Two suites on two cores have four threads, which would otherwise wait for one another by spinning.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Else Inductor compiles and runs two programs for each set of instructions that the processor says it has.
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
    sys.dont_write_bytecode = True
    folder.mkdir(parents=True, exist_ok=True)
    times = folder / f"{build.name}.times"
    waiting = longest_first(given.suites or suites(), times)
    if any(map(needs_torch, waiting)):
        import_torch()

    running, took, failed, count, worked = {}, {}, 0, len(waiting), 0.0
    while waiting or running:
        while waiting and len(running) < given.jobs:
            suite = waiting.pop(0)
            results = folder / f"{build.name}.{label(suite)}.xml"
            results.unlink(missing_ok=True)
            output = tempfile.TemporaryFile("w+", errors="replace")
            running[start(suite, results, output)] = suite, results, output, time.monotonic()
        child, status, usage = os.wait4(-1, os.WNOHANG)
        if not child:
            for late, (*_, since) in running.items():
                if time.monotonic() - since > given.timeout:
                    os.killpg(late, signal.SIGKILL)
            time.sleep(0.05)
            continue
        if child not in running:
            continue
        suite, results, output, since = running.pop(child)
        took[label(suite)] = time.monotonic() - since
        processor = usage.ru_utime + usage.ru_stime
        worked += processor
        code = os.waitstatus_to_exitcode(status)
        good = code in (0, NOTHING_TO_RUN)
        print(f"[{count - len(waiting) - len(running)}/{count}] {build.name}.pytest {os.path.relpath(suite, ROOT)}"
              f" {'passed' if good else f'FAILED ({code})'} {took[label(suite)]:.1f} s, {processor:.1f} s of a processor", flush=True)
        if not good:
            failed += 1
            output.seek(0)
            print(output.read(), flush=True)
            if not told(results):
                write_failure(results, label(suite), f"ended with {code}")
        output.close()
    print(f"{count} suites took {worked:.0f} s of a processor", flush=True)
    if not given.suites:
        times.write_text("".join(f"{name} {seconds:.1f}\n" for name, seconds in took.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
