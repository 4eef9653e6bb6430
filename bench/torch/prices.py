"""Prices against measured times: kinds of kernels that training steps are made of, whole and in parts.

    make bench-prices            or: build/venv/bin/python bench/torch/prices.py -o bench/results/DATE-prices.md

The device is measured first (lowtide.torch.measure_device), and nothing else is fitted. For each kind the whole batch,
a quarter, a sixteenth and a 64th of it: what the roofline says by itself beside the measured time, and what it says of
a part when the time of the whole is known, which is what plans with parts are priced by.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from lowtide._core import _call_costs
from lowtide.torch import measure_device
from lowtide.torch.device.rates import ns_of
from lowtide.torch.program.describe import _literal
from lowtide.torch.tensors.operators import DTYPES

import lowtide

aten = torch.ops.aten
CPU = torch.device("cpu")
PARTS = (1, 4, 16, 64)


def f(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def indices(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(most, shape)


# kind -> the call on a batch of b rows of the whole's 64
KINDS: dict[str, Callable[[int], tuple]] = {
    "mm": lambda b: (aten.mm.default, f(64 * b, 512), f(512, 512)),
    "mm, weight gradient": lambda b: (aten.mm.default, f(64 * b, 512).t(), f(64 * b, 512)),
    "addmm": lambda b: (aten.addmm.default, f(2048), f(32 * b, 512), f(512, 2048)),
    "bmm": lambda b: (aten.bmm.default, f(4 * b, 64, 64), f(4 * b, 64, 64)),
    "convolution": lambda b: (aten.convolution.default, f(b, 32, 28, 28), f(32, 32, 3, 3), f(32), [1, 1], [1, 1],
                              [1, 1], False, [0, 0], 1),
    "convolution_backward": lambda b: (aten.convolution_backward.default, f(b, 32, 28, 28), f(b, 32, 28, 28),
                                       f(32, 32, 3, 3), [32], [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                                       [True, True, True]),
    "attention": lambda b: (aten._scaled_dot_product_flash_attention_for_cpu.default, f(b, 4, 128, 32),
                            f(b, 4, 128, 32), f(b, 4, 128, 32)),
    "add": lambda b: (aten.add.Tensor, f(b, 128, 512), f(b, 128, 512)),
    "add, bias": lambda b: (aten.add.Tensor, f(b, 128, 512), f(512)),
    "mul": lambda b: (aten.mul.Tensor, f(b, 128, 512), f(b, 128, 512)),
    "relu": lambda b: (aten.relu.default, f(b, 128, 512)),
    "threshold_backward": lambda b: (aten.threshold_backward.default, f(b, 128, 512), f(b, 128, 512), 0),
    "gelu": lambda b: (aten.gelu.default, f(b, 128, 512)),
    "gelu_backward": lambda b: (aten.gelu_backward.default, f(b, 128, 512), f(b, 128, 512)),
    "native_layer_norm": lambda b: (aten.native_layer_norm.default, f(b, 128, 512), [512], f(512), f(512), 1e-5),
    "native_layer_norm_backward": lambda b: (aten.native_layer_norm_backward.default, f(b, 128, 512), f(b, 128, 512),
                                             [512], f(b, 128, 1), f(b, 128, 1).abs(), f(512), f(512),
                                             [True, True, True]),
    "native_group_norm": lambda b: (aten.native_group_norm.default, f(b, 32, 28, 28), f(32), f(32), b, 32, 784, 8, 1e-5),
    "_softmax": lambda b: (aten._softmax.default, f(b, 128, 512), -1, False),
    "_log_softmax": lambda b: (aten._log_softmax.default, f(16 * b, 4096), 1, False),
    "_log_softmax_backward": lambda b: (aten._log_softmax_backward_data.default, f(16 * b, 4096), f(16 * b, 4096), 1,
                                        torch.float32),
    "sum": lambda b: (aten.sum.dim_IntList, f(128 * b, 512), [0], True),
    "embedding": lambda b: (aten.embedding.default, f(8192, 256), indices(8192, b, 128)),
    "embedding_dense_backward": lambda b: (aten.embedding_dense_backward.default, f(b, 128, 256),
                                           indices(8192, b, 128), 8192, -1, False),
    "clone, transposed": lambda b: (aten.clone.default, f(b, 8, 128, 64).transpose(1, 2)),
    "cat": lambda b: (aten.cat.default, [f(b, 64, 512), f(b, 64, 512)], 1),
    "max_pool2d": lambda b: (aten.max_pool2d_with_indices.default, f(b, 32, 28, 28), [2, 2], [2, 2]),
    "native_dropout": lambda b: (aten.native_dropout.default, f(b, 128, 512), 0.1, True),
}


def graph_of(calls: list[tuple]) -> lowtide.Graph:
    """Each call as an op by itself, as captured graphs have it."""
    tensors, ops = [], []

    def operands(name: str, value: object) -> list[dict]:
        listed = isinstance(value, (list, tuple))
        found = []
        for i, t in enumerate(value if listed else [value]):
            if not isinstance(t, torch.Tensor):
                continue
            tensors.append({"bytes": t.untyped_storage().nbytes(), "shape": list(t.shape), "dtype": DTYPES[t.dtype]})
            found.append({"argument": name, "tensor": len(tensors) - 1, "shape": list(t.shape),
                          "strides": list(t.stride()), "dtype": DTYPES[t.dtype]} | ({"index": i} if listed else {}))
        return found

    for operator, *given in calls:
        read, literals = [], {}
        for argument, value in zip(operator._schema.arguments, given):
            found = operands(argument.name, value)
            read += found
            if not found:
                literals[argument.name] = _literal(value)
        made = operands("", operator(*given))
        ops.append({"kind": str(operator.overloadpacket), "inputs": [o["tensor"] for o in read],
                    "outputs": [o["tensor"] for o in made], "time": 1, "operands": read, "results": made,
                    "arguments": literals})
    return lowtide.Graph.from_dict({"format": "lowtide-graph", "version": 1, "tick": "ns", "tensors": tensors,
                                    "ops": ops, "outputs": []})


def table(title: str, rows: dict[str, list[float]], columns: list[str]) -> str:
    """Ratios by kind, with how far a column is off in the median."""
    lines = [f"| {title} | " + " | ".join(columns) + " |", "| --- |" + " --: |" * len(columns)]
    lines += [f"| {name} | " + " | ".join(f"{ratio:.2f}" for ratio in row) + " |" for name, row in rows.items()]

    def within(factor: float) -> list[str]:
        return [f"{sum(1 / factor <= r <= factor for r in column)} of {len(column)}" for column in zip(*rows.values())]

    median = [f"{statistics.median(column):.2f}" for column in zip(*rows.values())]
    off = [f"{statistics.median(max(r, 1 / r) for r in column):.2f}" for column in zip(*rows.values())]
    for name, cells in (("median", median), ("off by a factor of, median", off), ("within a factor of 2", within(2))):
        lines.append(f"| **{name}** | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Prices against measured times, on this CPU.")
    parser.add_argument("-o", "--output", type=Path, help="write the tables there (default: standard output)")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    device = measure_device("cpu", "this CPU")
    measured, modelled, plain = {}, {}, {}
    for name, call in KINDS.items():
        calls = [call(64 // n) for n in PARTS]
        measured[name] = [ns_of(lambda c=c: c[0](*c[1:]), CPU) for c in calls]
        graph = graph_of(calls)
        modelled[name] = [ns for ns, _ in _call_costs(graph, device)]
        plain[name] = [op.time for op in lowtide.priced_on(graph, device).ops]

    sizes = ["whole", *(f"1/{n}" for n in PARTS[1:])]

    def ratios(times: dict[str, list[int]]) -> dict[str, list[float]]:
        return {k: [a / b for a, b in zip(times[k], measured[k])] for k in KINDS}

    shares = {k: [measured[k][0] * modelled[k][i] / modelled[k][0] / measured[k][i] for i in range(1, len(PARTS))]
              for k in KINDS}
    times = "\n".join(f"| {k} | " + " | ".join(f"{ns / 1000:,.0f}" for ns in v) + " |" for k, v in measured.items())
    text = "\n\n".join([
        f"# Prices against measured times: {len(KINDS)} kinds of kernels, a CPU with {options.threads} thread",
        "Made by `bench/torch/prices.py`; torch " + torch.__version__ + ". The device was measured beforehand by "
        "`lowtide.torch.measure_device`, nothing is fitted to kinds:",
        "```json\n" + device.to_json().strip() + "\n```",
        "Estimated / measured, from the device alone (1: right; above: too slow):",
        table("with what small kernels lose", ratios(modelled), sizes),
        table("as whole ops are priced", ratios(plain), sizes),
        "The same of a part whose whole was measured, as plans with parts are priced:",
        table("a part of a measured op", shares, sizes[1:]),
        "Measured, in us:",
        "| kind | " + " | ".join(sizes) + " |\n| --- |" + " --: |" * len(sizes) + "\n" + times]) + "\n"
    if options.output:
        options.output.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
