"""The project's own GPU tests, if the sources are present."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

from ..section import Context

# the suites, with what of them runs
_ON_GPU = (("test_torch_gpu.py", ""), ("test_torch_offload.py", "TestGpu"), ("test_torch_updates.py", "on_a_gpu"),
           ("test_torch_host_states.py", "on_a_gpu"), ("test_torch_bits_of_second_runs.py", "cuda"), ("test_torch_in_place.py", "cuda"),
           ("test_dimensions.py", "cuda"))
_ON_CPU = (("test_torch_compat.py", ""),)
_JOBS = 8


def suites(context: Context) -> None:
    if context.tests is None or importlib.util.find_spec("pytest") is None:
        context.say("tests", notes=["no tests"])
        return
    for file, chosen in _ON_GPU if context.on_gpu else _ON_CPU:
        what = f"{file} {chosen}".strip()
        if (context.tests / file).is_file() and context.has_time(10, what):
            with context.guarded(what):
                _run(context, context.tests, what, file, chosen)


def _run(context: Context, folder: Path, what: str, file: str, chosen: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--maxfail=20", "-p", "no:cacheprovider", "--no-header", "-rfE",
               "--tb=short", "--show-capture=no", file, *(["-k", chosen] if chosen else [])]
    if context.on_gpu and importlib.util.find_spec("xdist") is not None:
        command += ["-n", str(min(_JOBS, os.cpu_count() or 1))]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, "LOWTIDE_CACHE": "off", "COLUMNS": "200"})
    try:
        text, _ = process.communicate(timeout=max(5.0, context.seconds_left - 3))
        faults = [] if process.returncode in (0, 5) else ["tests"]  # 5: this version has none of that name
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
        faults = ["time"]
    lines = [line for line in text.splitlines() if line.strip()]
    context.say(what, faults, last=lines[-1].strip("= ")[:200] if lines else "",
                failed=[line[:200] for line in lines if line.startswith(("FAILED", "ERROR "))],
                seconds=round(time.monotonic() - began, 1), **({"output": text[-20_000:]} if faults else {}))
