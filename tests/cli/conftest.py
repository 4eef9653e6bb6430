"""Runs the built command as a person or a script would."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

BINARY = os.environ.get("LOWTIDE_BIN", "build/release/lowtide")
SOURCE = Path(os.environ.get("LOWTIDE_SOURCE_DIR", "."))


class Finished:
    def __init__(self, done: subprocess.CompletedProcess):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)


def lowtide(*arguments, stdin=None, env=None) -> Finished:
    return Finished(
        subprocess.run(
            [BINARY, *map(str, arguments)],
            input=stdin, capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})},
        )
    )


def wait_for_handler(run: subprocess.Popen):
    """Until the command would hear an interrupt."""
    end = time.monotonic() + 600
    while time.monotonic() < end and run.poll() is None:
        caught = next(line.split()[1] for line in Path(f"/proc/{run.pid}/status").read_text().splitlines()
                      if line.startswith("SigCgt"))
        if int(caught, 16) >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.01)
    raise AssertionError("it never listened")


@pytest.fixture(scope="session")
def resnet() -> Path:
    return SOURCE / "examples" / "resnet50-train.graph.json.gz"


@pytest.fixture
def chain(tmp_path) -> Path:
    """a (10 bytes) -> b (6) -> c (1, reads a too): b can be computed again, a cannot be done without."""
    graph = {
        "format": "lowtide-graph", "version": 1, "name": "chain", "tick": "us",
        "tensors": [{"name": "a", "bytes": 10}, {"name": "b", "bytes": 6}, {"name": "x", "bytes": 8},
                    {"name": "c", "bytes": 1}],
        "ops": [
            {"name": "A", "inputs": [], "outputs": [0], "time": 4},
            {"name": "B", "inputs": [0], "outputs": [1], "time": 1},
            {"name": "X", "inputs": [0], "outputs": [2], "time": 2},
            {"name": "C", "inputs": [1, 2], "outputs": [3], "time": 3},
        ],
        "outputs": [3],
    }
    path = tmp_path / "chain.graph.json"
    path.write_text(json.dumps(graph))
    return path
