"""The code blocks of README and docs."""

import os
import re
from pathlib import Path

ROOT = Path(os.environ.get("LOWTIDE_SOURCE_DIR", Path(__file__).resolve().parents[2]))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def with_blocks(language: str) -> list[str]:
    """The pages that have some, as paths from the root."""
    return [str(page.relative_to(ROOT)) for page in PAGES if blocks(page, language)]
