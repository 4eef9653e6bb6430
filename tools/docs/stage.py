"""Copies the pages of the site into one folder, as Sphinx reads them: stage.py ROOT FOLDER

The pages stay what they are in the repository, with three differences.  README.md is the site's front page, index.md.  A link to
a folder leads to the folder's README.md, or is plain text where it has none.  The front page lists all pages for the navigation,
in the order of docs/README.md, so that no second list is to be kept.
"""
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "bench/results/*.md", "examples/README.md"]
PROJECT = "Project"  # the section of what docs/README.md does not list
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")


def pages_of(root: Path) -> list[Path]:
    return sorted({page.relative_to(root) for pattern in PAGES for page in root.glob(pattern)})


def staged(page: Path) -> Path:
    """Where a page lies on the site."""
    return Path("index.md") if page == Path("README.md") else page


def with_site_links(text: str, page: Path, root: Path, files: set[Path]) -> str:
    """The text with its links as the site needs them; what they lead to that is no page is added to `files`."""

    def link(match: re.Match[str]) -> str:
        image, label, target = match.groups()
        path, mark, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return match[0]
        found = Path(os.path.normpath(page.parent / path))
        if (root / found).is_dir():
            if not (root / found / "README.md").exists():
                return label
            found /= "README.md"
        elif found.suffix != ".md" and (root / found).is_file():
            files.add(found)
        relative = os.path.relpath(staged(found), staged(page).parent)
        return f"{image}[{label}]({relative}{mark}{anchor})"

    # What is code stays as it is, except for code in the text of a link.
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The sections of docs/README.md and what each lists, as entries of a table of contents: "What it says <its/path.md>"."""
    title: str = ""
    listed: list[str] = []
    for line in text.splitlines():
        if heading := re.match(r"\*\*(.+?):?\*\*", line):
            if listed:
                yield title, listed
            title, listed = heading[1], []
        if line.startswith(("- ", "**")) and (found := re.search(r"\[([^\]]+)\]\(([^)#\s]+\.md)\)", line)):
            label = found[1].replace("`", "")
            listed.append(f"{label[0].upper()}{label[1:]} <{os.path.normpath(Path('docs', found[2]))}>")
    if listed:
        yield title, listed


def contents(title: str, pages: list[str]) -> str:
    """A list of pages for the navigation, which the page itself does not show."""
    lines = [f"```{{toctree}}\n:caption: {title}", ":hidden:", "", *pages, "```"]
    return "\n" + "\n".join(lines) + "\n"


def navigation(root: Path, made: dict[str, list[str]]) -> str:
    """All pages by section: those of docs/README.md, then those in `made`, then the rest of the repository's."""
    text = ""
    for title, listed in sections((root / "docs/README.md").read_text()):
        text += contents(title, listed)
    for title, listed in made.items():
        text += contents(title, listed)
    project = ["docs/README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/releasing.md", "examples/README.md",
               "bench/results/README.md"]
    return text + contents(PROJECT, [page for page in project if (root / page).exists()])


def stage(root: Path, target: Path, made: dict[str, list[str]]) -> None:
    files: set[Path] = set()
    for page in pages_of(root):
        text = with_site_links((root / page).read_text(), page, root, files)
        if page == Path("README.md"):
            text += navigation(root, made)
        elif page == Path("bench/results/README.md"):
            results = sorted(other.name for other in (root / page).parent.glob("*.md") if other.name != page.name)
            text += contents("Results", results)
        write(target / staged(page), text)
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, target / file)



def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
