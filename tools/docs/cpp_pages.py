"""Pages of the public C++ headers, one a room, for the site.

A header's comments are its documentation: the comment at its head, and those above its declarations, become text, the
declarations code.  What is private in a class is left out.  A header is public where its room's CMakeLists.txt lists it under
HEADERS.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TYPE = re.compile(r"^(?:template <.*>\s*)?(?:class|struct|enum class|enum) (\w+)[^;]*\{", re.MULTILINE)
FORWARD = re.compile(r"(?:template <[^<>]*>\s*)?(?:class|struct) \w+;")
ACCESS = re.compile(r"\s*(public|protected|private):")
SPECIAL = re.compile(r"([*<])")


class Declaration(NamedTuple):
    comment: list[str]  # its lines, without what marks them as a comment
    code: list[str]  # none where a comment stands by itself

    @property
    def type_name(self) -> str | None:
        """Of a class, struct or enum that is defined here."""
        found = TYPE.match("\n".join(self.code))
        return found[1] if found else None


    @property
    def title(self) -> str | None:
        """The name of what is declared first; of a function with parentheses."""
        text = "\n".join(self.code)
        if self.type_name:
            return self.type_name
        if found := re.search(r"\busing (\w+) =|(\boperator\W+|\b\w+)\(|\b(\w+)(?:\[\w*\])? ?[={;]", text):
            return found[1] or found[3] or f"{found[2]}()"
        return None


class Header(NamedTuple):
    comment: list[str]
    declarations: list[Declaration]


def public_headers(room: Path) -> list[str]:
    text = (room / "CMakeLists.txt").read_text()
    listed = re.search(r"\bHEADERS\s+((?:[\w/]+\.h\s+)+)", text)
    return listed[1].split() if listed else []


def without_private(lines: list[str]) -> Iterator[str]:
    """The lines of a declaration, except for the private and protected parts of its classes."""
    depth, hidden = 0, None  # the depth of the class of which a part is hidden
    kept_blank = False
    for line in lines:
        after = depth + line.count("{") - line.count("}")
        access = ACCESS.match(line)
        if hidden is not None and (after < hidden or access and access[1] == "public" and depth == hidden):
            hidden = None
        if access and access[1] != "public" and hidden is None:
            hidden = depth
        if hidden is None:
            if kept_blank and not line.lstrip().startswith("}"):
                yield ""
            kept_blank = not line.strip()
            if not kept_blank:
                yield line
        depth = after


def read_header(text: str) -> Header:
    lines = text.splitlines()
    start = lines.index("#pragma once")
    first = [line[3:] for line in lines[:start] if line.startswith("//")]
    # What is internal has a namespace of its own.
    rest = re.sub(r"^namespace detail \{\n.*?^\}.*?$", "", "\n".join(lines[start + 1:]), flags=re.DOTALL | re.MULTILINE)
    body = [line for line in rest.splitlines() if not re.match(r"#|namespace [\w:]+ \{|\}  // namespace", line)]
    declarations: list[Declaration] = []
    comment: list[str] = []
    code: list[str] = []
    depth, ended = 0, True  # whether the line before ended a declaration
    joins = False  # whether the next declaration stands right below one, without a comment
    for line in [*body, ""]:
        if not code and line.startswith("//"):
            comment.append(line[3:])
            joins = False
            continue
        if not line.strip() and ended and depth == 0:
            if comment:
                declarations.append(Declaration(comment, []))
                comment = []
            joins = False
            continue
        code.append(line)
        depth += line.count("{") - line.count("}") + line.count("(") - line.count(")")
        ended = depth == 0 and line.split("//")[0].rstrip().endswith((";", "}"))
        if ended:
            shown = list(without_private(code))
            if joins and not comment and not TYPE.match("\n".join(shown)):
                declarations[-1].code.extend(shown)
            elif not FORWARD.fullmatch("\n".join(shown)):
                declarations.append(Declaration(comment, shown))
            joins = bool(declarations) and declarations[-1].type_name is None
            comment, code = [], []
    return Header(first, declarations)


def markdown(comment: list[str], root: Path, page: Path) -> str:
    """A comment as Markdown: lines set off to the right, unless they go on with a list, are code."""
    lines: list[str] = []
    in_list = in_code = False
    for line in comment:
        indented = line.startswith("  ")
        if indented and not in_list and not in_code:
            lines += ["", "```text"]
        elif in_code and not indented:
            lines += ["```", ""]
        in_code = indented and not in_list
        if line.startswith("- ") and not in_list:
            lines.append("")
        in_list = line.startswith("- ") or in_list and indented
        lines.append(line if in_code else _escaped(line, root, page))
    return "\n".join([*lines, "```"] if in_code else lines)


def _escaped(line: str, root: Path, page: Path) -> str:
    up = "../" * (len(page.parts) - 1)
    parts = re.split(r"(`[^`]*`)", line)
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]

    def link(found: re.Match[str]) -> str:
        return f"[{found[0]}]({up}{found[0]})" if (root / found[0]).exists() else found[0]

    return re.sub(r"(?<![\w/(])docs/[\w/-]+\.md", link, "".join(parts))


def page_of(room: str, root: Path, page: Path) -> str:
    text = [f"# C++: {room}", ""]
    for name in public_headers(root / "src/lowtide" / room):
        header = read_header((root / "src/lowtide" / room / name).read_text())
        text += [f"## {name}", "", "```cpp", f'#include "lowtide/{room}/{name}"', "```", ""]
        text += [markdown(header.comment, root, page), ""]
        for declaration in header.declarations:
            if declaration.title:
                text += [f"### {declaration.title}", ""]
            if declaration.comment:
                text += [markdown(declaration.comment, root, page), ""]
            if declaration.code:
                text += ["```cpp", *declaration.code, "```", ""]
    return "\n".join(text)


def pages(root: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """A page for each room with public headers, as its place under `folder` and its text."""
    for room in sorted(path.parent.name for path in (root / "src/lowtide").glob("*/CMakeLists.txt")):
        if public_headers(root / "src/lowtide" / room):
            page = folder / f"{room}.md"
            yield page, page_of(room, root, page)
