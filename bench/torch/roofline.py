"""Steps with eager and with fused kernels on a device's roofline: time without a plan and at budgets.

    python bench/torch/roofline.py [--models unet,gpt2:amp] [--budgets 50,40,30] [--time 4]

Nothing runs: the steps are those that `lowtide.torch.capture` gives for the built-in examples.  Budgets and times are in per cent of the
eager step's peak and time without a plan.  Plans recompute, and run ops in place.
"""

from __future__ import annotations

import argparse

import lowtide.torch
from lowtide.torch.api.example_models import EXAMPLES

import lowtide


def row(graph: lowtide.Graph, eager: lowtide.Graph, words: str, budgets: list[int], limits: dict[str, float | int]) -> str:
    clusters = [op.arguments["key"] for op in map(graph.op, graph.order) if op.kind == "lowtide.cluster"]
    cells = [f"{len(clusters)} ({len(set(clusters))})" if clusters else "", _percent(graph.own_peak, eager.own_peak),
             _percent(graph.duration, eager.duration)]
    for budget in budgets:
        found = lowtide.plan(graph, budget * eager.own_peak // 100, techniques="recompute,in_place", **limits)
        cells.append(_percent(found.duration, eager.duration) if found.plan else "no plan")
    return f"| {words} | {' | '.join(cells)} |"


def _percent(value: int, whole: int) -> str:
    return f"{100 * value / whole:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="gpt2:amp,resnet50,unet", help="examples, each with a number type: " + ", ".join(EXAMPLES))
    parser.add_argument("--device", default="a100")
    parser.add_argument("--budgets", default="50,40,30", help="in per cent")
    parser.add_argument("--time", type=float, default=4.0, help="seconds of each search")
    parser.add_argument("--work", type=int, help="a limit on counted work in its place")
    options = parser.parse_args()
    budgets = [int(budget) for budget in options.budgets.split(",")]
    limits = {"time": options.time} if options.work is None else {"work": options.work}
    print(f"| | clusters (distinct) | peak | no plan | {' | '.join(f'{budget} %' for budget in budgets)} |")
    print("| --- | " + " | ".join(["---:"] * (3 + len(budgets))) + " |")
    for model in options.models.split(","):
        name, _, dtype = model.partition(":")
        build, batch = EXAMPLES[name].build, EXAMPLES[name].batch
        eager, fused = (lowtide.torch.capture(lambda: build(batch), costs=options.device, dtype=dtype or "f32", fused=fused)  # noqa: B023
                        for fused in (False, True))
        title = EXAMPLES[name].title.split(",")[0] + (f", {dtype}" if dtype else "")
        for words, graph in ((f"{title}, eager", eager), (f"{title}, fused", fused)):
            print(row(graph, eager, words, budgets, limits), flush=True)


if __name__ == "__main__":
    main()
