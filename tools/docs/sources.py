"""Writes all that Sphinx reads for the site: sources.py BINARY ROOT FOLDER

The repository's pages, those of the Python package and the C++ headers, and the live ones, which BINARY draws.
"""
import sys
from pathlib import Path

import cpp_pages
import live
import python_pages
import stage


def main(binary: Path, root: Path, target: Path) -> None:
    sections = {"Live": live.pages(binary, root, target, Path("live-pages")),
                "API": [*python_pages.pages(root, Path("api/python")), *cpp_pages.pages(root, Path("api/cpp"))]}
    made = {}
    for section, pages in sections.items():
        made[section] = []
        for page, text in pages:
            stage.write(target / page, text)
            made[section].append(str(page))
    stage.stage(root, target, made)


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:4]))
