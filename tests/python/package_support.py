"""What the tests of the package share: where the command is, a small graph, a script run by itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))
VIT = ROOT / "examples" / "vit-train.graph.json.gz"

# a (10 bytes) -> b (6) -> c (1, reads x too): everything by hand.
CHAIN = {
    "format": "lowtide-graph", "version": 1, "name": "chain", "tick": "us",
    "tensors": [{"name": "a", "bytes": 10}, {"name": "b", "bytes": 6, "shape": [3, 2], "dtype": "i8"},
                {"name": "x", "bytes": 8}, {"name": "c", "bytes": 1}],
    "ops": [
        {"name": "A", "inputs": [], "outputs": [0], "time": 4},
        {"name": "B", "inputs": [0], "outputs": [1], "time": 1},
        {"name": "X", "inputs": [0], "outputs": [2], "time": 2},
        {"name": "C", "kind": "add", "inputs": [1, 2], "outputs": [3], "time": 3},
    ],
    "outputs": [3],
}


def command(*arguments, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=600, **options)


def script(text, *arguments, **options):
    """Runs Python in a process of its own, away from the source tree."""
    return subprocess.run([sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True,
                          timeout=600, cwd=Path(sys.executable).parent, **options)


def plan_file(path):
    """What does not depend on the machine's speed."""
    plan = json.loads(Path(path).read_text())
    for entry in plan["found_by"]["history"]:
        entry.pop("seconds", None)
    for part in plan["found_by"].get("parts", []):
        part.pop("seconds", None)
    return plan
