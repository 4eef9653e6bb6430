"""Options about techniques: which are allowed, over which link, with how much host memory.

Each function validates an option and returns it in canonical form.  Raises ValueError or TypeError.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, Literal, Union

import lowtide

# what a text of bytes is read by; its shares are of nothing
NOTHING = lowtide.Graph.from_dict({"format": "lowtide-graph", "version": 1, "tick": "ns", "tensors": [], "ops": [], "outputs": []})

TechniqueName = Literal["recompute", "in_place", "offload", "split", "hoist", "substitute", "default", "all"]
Techniques = Union[str, Iterable[TechniqueName]]  # names one by one, or with commas in between

TRANSFORMS = frozenset({"split", "hoist", "substitute"})  # which change the graph
CHANGE_BITS = frozenset({"split", "substitute"})  # or may do so
TECHNIQUES = TRANSFORMS | {"recompute", "in_place", "offload"}  # that the code which runs a plan can follow


def techniques_of(techniques: Any) -> frozenset[str]:
    """The techniques that plans may use, from those that the user named; "offload" only if it is meant for this device."""
    try:
        techniques = techniques if techniques is None or isinstance(techniques, str) else list(techniques)
    except TypeError:
        raise TypeError(f'techniques must be names ("recompute,in_place", or a list of them) or None, not '
                        f"{techniques!r}") from None
    names = _names(techniques)
    if any(isinstance(name, str) and name.strip().lower() == "all" for name in names):
        return TECHNIQUES
    others = [name for name in names if not _is_offload(name)]
    if names and not others:
        return frozenset({"offload"})
    found = frozenset(lowtide.Problem(NOTHING, 0, techniques=others or None).techniques) & TECHNIQUES
    default = not names or any(isinstance(name, str) and name.strip().lower() == "default" for name in names)
    return found | {"offload"} if default or others != names else found


def _names(techniques: Any) -> list[Any]:
    return techniques.split(",") if isinstance(techniques, str) else list(techniques or ())


def names_offload(techniques: Any) -> bool:
    """Has a user named it, so that it is meant for a CPU, too?"""
    return any(map(_is_offload, _names(techniques)))


def without_transforms(terms: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a Problem about techniques and copies, without transforms; in_place, which costs nothing, stands for no technique."""
    techniques = [name for name in terms.get("techniques", ("recompute",)) if name not in TRANSFORMS] or ["in_place"]
    copies = {name: terms[name] for name in ("link", "host_budget") if "link" in terms}
    return copies | {"techniques": techniques} if copies or "recompute" not in techniques else {}


def without_copies(terms: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a Problem, without copies to the host."""
    techniques = [name for name in terms.get("techniques", ("recompute",)) if name != "offload"] or ["in_place"]
    return {name: value for name, value in terms.items() if name not in ("link", "host_budget")} | {"techniques": techniques}


def _is_offload(name: Any) -> bool:
    return isinstance(name, str) and name.strip().lower() == "offload"


def link_of(link: Any) -> str | None:
    """A link as lowtide.plan takes it."""
    if link is None:
        return None
    if not isinstance(link, str):
        raise TypeError(f'link must be bytes a second and a latency ("25GB/s,10us"), not {link!r}')
    lowtide.Problem(NOTHING, 0, link=link)
    return link


def bytes_of(budget: int | str, graph: lowtide.Graph = NOTHING) -> int:
    """The bytes that a budget is of a graph.  Raises ValueError."""
    found = lowtide.Problem(graph, budget).budget
    assert found is not None, "it is what was asked"
    return found


def host_budget_of(value: Any) -> int:
    """Bytes on the host."""
    words = f'host_budget is bytes on the host (an int, or "8GiB"), not {value!r}'
    if not isinstance(value, (str, numbers.Integral)) or isinstance(value, bool):
        raise TypeError(words)
    if "%" in str(value):
        raise ValueError(words)
    try:
        return bytes_of(value if isinstance(value, str) else int(value))
    except ValueError as error:
        raise ValueError(words) from error
