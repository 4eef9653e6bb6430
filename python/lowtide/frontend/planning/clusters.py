"""Which ops became one kernel: the clusters of a planned graph, for people."""

from __future__ import annotations

import html
import json
from collections import Counter
from dataclasses import dataclass

import lowtide

KIND = "lowtide.cluster"


@dataclass(frozen=True)
class FusedKernel:
    """A cluster of ops that is one op of a graph.

    name: of the op.  ops: its operators.  borders: why it ends where it does.  origin: the module of its last op.  phase: "forward"
    or "backward".  runs: how often the plan computes it.  like: the number of clusters that compute the same, this one included.
    """

    name: str
    ops: tuple[str, ...]
    borders: tuple[str, ...]
    origin: str
    phase: str
    runs: int
    like: int


def fused_kernels(graph: lowtide.Graph, plan: lowtide.Plan) -> list[FusedKernel]:
    """The clusters of a graph, in its order; empty if it has none."""
    clusters = {i: op for i in graph.order for op in [graph.op(i)] if op.kind == KIND}
    if not clusters:
        return []
    runs = Counter(plan.sequence)
    like = Counter(str(op.arguments.get("key")) for op in clusters.values())
    found = []
    for i, op in clusters.items():
        attributes = json.loads(op.attributes) if op.attributes else {}
        found.append(FusedKernel(op.name, tuple(attributes.get("ops", ())), tuple(attributes.get("borders", ())), op.origin or "",
                                 op.phase or "", runs[i], like[str(op.arguments.get("key"))]))
    return found


def with_fused_kernels(page: str, kernels: list[FusedKernel]) -> str:
    """A page with a table of these behind what it shows, above its foot."""
    if not kernels:
        return page
    distinct = round(sum(1 / kernel.like for kernel in kernels))
    rows = "".join(
        f"<tr><td>{html.escape(k.name)}<br><small class=muted>{html.escape(k.origin)}</small></td><td>{html.escape(', '.join(k.ops))}</td>"
        f"<td>{'<br>'.join(map(html.escape, k.borders))}</td><td>{k.phase}</td><td>{k.runs}</td></tr>" for k in kernels)
    table = (f"<section><details><summary>{len(kernels)} fused kernels, {distinct} of them distinct</summary>"
             "<div class=table><table><thead><tr><th>kernel</th><th>ops</th><th>why it ends there</th><th>phase</th><th>runs</th></tr>"
             f"</thead><tbody>{rows}</tbody></table></div></details></section>")
    before, foot, after = page.partition("  <footer")
    return before + table + foot + after
