"""Pages of the Python package from its docstrings, for the site.

griffe reads the sources, and of the bindings the stub that the build of the wheel writes: nothing is imported, so that no PyTorch
is needed.  A module's `__all__` says what is public.
"""
import re
from collections.abc import Iterator
from pathlib import Path

import griffe

MODULES = ["lowtide", "lowtide.torch"]
ARGUMENT = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*): +")
KINDS = ["functions", "classes", "exceptions"]


def signature(function: griffe.Function, name: str) -> str:
    """As it is called: without self, and with the types that the sources give."""
    shown = []
    marks = {griffe.ParameterKind.positional_only: "/", griffe.ParameterKind.keyword_only: "*"}
    parameters = list(function.parameters)
    if isinstance(function.parent, griffe.Class) and "staticmethod" not in function.labels:
        parameters = parameters[1:]
    variadic = False
    for i, parameter in enumerate(parameters):
        before = parameters[i - 1].kind if i else None
        if parameter.kind is griffe.ParameterKind.keyword_only and not variadic and before is not parameter.kind:
            shown.append("*")
        variadic = variadic or parameter.kind is griffe.ParameterKind.var_positional
        text = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(parameter.kind, "")
        text += parameter.name
        if parameter.annotation is not None:
            text += f": {parameter.annotation}"
        if parameter.default is not None and not text.startswith("*"):
            text += f" = {parameter.default}" if parameter.annotation is not None else f"={parameter.default}"
        shown.append(text)
        after = parameters[i + 1].kind if i + 1 < len(parameters) else None
        if parameter.kind in marks and marks[parameter.kind] == "/" and after is not parameter.kind:
            shown.append("/")
    returns = f" -> {function.returns}" if function.returns is not None and name != function.parent.name else ""
    return f"{name}({', '.join(shown)}){returns}"


def text_of(item: griffe.Object) -> str:
    """The docstring as Markdown: a paragraph of `name: text` lines, each going on indented, becomes a list."""
    text = item.docstring.value if item.docstring else ""
    return "\n\n".join(_paragraph(part) for part in re.split(r"\n\s*\n", text))


def _paragraph(text: str) -> str:
    starts = [line for line in text.splitlines() if not line.startswith(" ")]
    if len(starts) == len(text.splitlines()) == 1 or not starts or not all(ARGUMENT.match(line) for line in starts):
        return text
    return "\n".join(ARGUMENT.sub(r"- **\1**: ", line) if not line.startswith(" ") else "  " + line.strip()
                     for line in text.splitlines())


def directive(kind: str, head: str, options: list[str], body: str, fence: str = ":::") -> str:
    lines = [f"{fence}{{py:{kind}}} {head}", *(option if ":" in option else f":{option}:" for option in options)]
    return "\n".join([*lines, "", body, fence, ""])


def member_pages(item: griffe.Class) -> Iterator[str]:
    for member in item.members.values():
        if member.name.startswith("_") or member.is_alias:
            continue
        if isinstance(member, griffe.Function):
            options = ["staticmethod"] if "staticmethod" in member.labels else []
            options += ["classmethod"] if "classmethod" in member.labels else []
            yield directive("method", signature(member, member.name), options, text_of(member))
        elif isinstance(member, griffe.Attribute):
            kind = "property" if "property" in member.labels else "attribute"
            options = [f":type: {member.annotation}"] if member.annotation is not None else []
            yield directive(kind, member.name, options, text_of(member))


def entry(name: str, item: griffe.Object) -> str:
    if isinstance(item, griffe.Function):
        return directive("function", signature(item, name), [], text_of(item))
    assert isinstance(item, griffe.Class)
    made = item.members.get("__init__")
    head = name
    body = text_of(item)
    if isinstance(made, griffe.Function):
        head = signature(made, name)
        body += f"\n\n{text_of(made)}"
    kind = "exception" if is_exception(item) else "class"
    return directive(kind, head, [], "\n".join([body, "", *member_pages(item)]), "::::")


def is_exception(item: griffe.Class) -> bool:
    return any(str(base).endswith(("Error", "Exception", "Warning")) for base in item.bases)


def page_of(module: griffe.Module) -> str:
    exports = module.exports or []
    items = {str(name): module[str(name)] for name in exports if not str(name).startswith("_")}
    items = {name: item.final_target if item.is_alias else item for name, item in items.items()}
    groups: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, item in sorted(items.items()):
        kind = "functions" if item.is_function else "exceptions" if is_exception(item) else "classes"
        groups[kind].append(entry(name, item))
    text = [f"# Python: {module.path}", "", f"```{{py:module}} {module.path}\n```", "```{highlight} python\n```", ""]
    text += [text_of(module), ""]
    for kind in KINDS:
        if groups[kind]:
            text += [f"## {kind.capitalize()}", "", *groups[kind]]
    return "\n".join(text)


def pages(root: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """A page for each public module, as its place under `folder` and its text."""
    if not (root / "python/lowtide/_core.pyi").exists():
        raise SystemExit("no python/lowtide/_core.pyi, the stub of the bindings: `make wheel` writes it")
    package = griffe.load("lowtide", search_paths=[root / "python"], allow_inspection=False, resolve_aliases=True)
    for name in MODULES:
        module = package if name == "lowtide" else package[name.removeprefix("lowtide.")]
        yield folder / f"{name}.md", page_of(module)
