"""Fails on files that are too long and on headers without #pragma once."""
import sys
from pathlib import Path

LIMITS = {".h": 200, ".cpp": 500}
FOLDERS = ["src", "tests", "bench", "python/bindings"]


def faults(root: Path):
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*")):
        limit = LIMITS.get(path.suffix)
        if limit is None:
            continue
        lines = path.read_text().splitlines()
        if len(lines) > limit:
            yield path, f"{len(lines)} lines, more than {limit}: split it by idea"
        if path.suffix == ".h" and "#pragma once" not in lines:
            yield path, "no #pragma once"


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = [f"{path.relative_to(root)}: {fault}" for path, fault in faults(root)]
    print("\n".join(found) or "every file is as the rules say")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
