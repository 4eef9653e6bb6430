"""What README and docs tell people to type: Lowtide's commands run, in the order of the page and in little time; of others
the program, the script and the target exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from blocks import ROOT, blocks, with_blocks

BINARY = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))
# what ends with another status than 0, as the page says
STATUS = {"build/release/lowtide plan examples/gpt2-train.graph.json.gz --budget 4GiB": 1}
# what searches, and so takes a limit; a budget that takes long to reach gets more
SEARCHES = ("plan", "curve", "fit")
LIMIT = {"--techniques all": 8}
# what another page, or a command that takes long, has made
MADE = {"vit-h100.graph.json.gz": "examples/vit-train.graph.json.gz"}


def lines(page):
    for block in blocks(ROOT / page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#.*", "", line).strip()
            if line and not line.startswith("#"):
                yield line


def limited(words):
    line = " ".join(words)
    if words[1] not in SEARCHES or "--time" in words:
        return words
    return [*words, "--time", str(next((seconds for part, seconds in LIMIT.items() if part in line), 1))]


@pytest.mark.parametrize("page", with_blocks("sh"))
def test_commands_run(page, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, like in MADE.items():
        (tmp_path / name).symlink_to(ROOT / like)
    for line in lines(page):
        words = shlex.split(line.partition(" | ")[0])
        if words[0] != "build/release/lowtide":
            continue
        run = subprocess.run([BINARY, *limited(words)[1:]], capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == STATUS.get(line, 0), f"{line}:\n{run.stdout}{run.stderr}"


@pytest.mark.parametrize("page", with_blocks("sh"))
def test_other_commands_of_a_page_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in lines(page):
        words = [word for word in shlex.split(line) if not re.fullmatch(r"[A-Z_]+=.*", word)]
        if words[0] == "make":
            assert words[1] in targets, line
        for word in words:
            if word.startswith(("tools/", "bench/", "examples/")) or word.endswith(".py") and "/" in word:
                assert (ROOT / word).exists(), line
        script = next((word for word in words if word.startswith("bench/") and word.endswith(".py")), None)
        if script:
            known = (ROOT / script).read_text() + "".join(p.read_text() for p in (ROOT / script).parent.glob("*.py"))
            for flag in (word.partition("=")[0] for word in words if word.startswith("--")):
                assert f'"{flag}"' in known, f"{line}: no {flag}"
