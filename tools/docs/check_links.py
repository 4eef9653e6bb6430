"""Fails for a link within a built site that leads nowhere: check_links.py FOLDER

What the generator writes itself, and pages that it only copies, are read like all others: every href and src of a file of the
site must name a file there, and every anchor an element of that page.
"""
from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and (name == "id" or name == "name" and tag == "a"):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def faults(site: Path) -> list[str]:
    pages = {path.resolve(): Page(path.read_text()) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            where = path.relative_to(site.resolve())
            if not target.is_file():
                found.append(f"{where}: {link} leads to no file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{where}: {link} leads to no element of its page")
    return found


def main() -> int:
    found = faults(Path(sys.argv[1]))
    print("\n".join(sorted(set(found))) or "every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
