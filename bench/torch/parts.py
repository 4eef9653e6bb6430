"""Training steps of which regions run in parts, beside what people do by hand: peaks, times, and what changes.

    python bench/torch/parts.py [--rounds N] [--out build/bench/torch-parts.md]

writes a table. Rows of a small GPT with many words: eager; `torch.utils.checkpoint` on its blocks; gradient accumulation
over microbatches; a cross-entropy fused with the last layer, in chunks that make their gradients in the forward (as Liger
Kernel's); PyTorch's activation_memory_budget; Lowtide within several budgets, by recomputation and with all techniques.
Peaks are measured above what is there before the forward. Times are medians of steps that take turns, by eager's.
"""
import argparse
import copy
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

os.environ["LOWTIDE_CACHE"] = "off"

import lowtide.torch
import torch
import torch.nn.functional as F
from lowtide.torch.device.meter import peak_rise
from torch import nn
from torch.utils.checkpoint import checkpoint

WORDS, WIDTH, LAYERS, HEADS, TOKENS, BATCH = 8192, 128, 2, 4, 64, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.between(x))))


class ChunkedLoss(torch.autograd.Function):
    """cross_entropy(x @ weight.T, y) in chunks; gradients are made in the forward."""

    @staticmethod
    def forward(ctx, x, weight, y, chunks):
        loss, dx, dw = 0, torch.empty_like(x), torch.zeros_like(weight)
        for piece, target, into in zip(x.chunk(chunks), y.chunk(chunks), dx.chunk(chunks), strict=True):
            scores = torch.log_softmax(piece @ weight.T, 1)
            loss = loss - scores.gather(1, target[:, None]).sum() / len(y)
            scores.exp_().scatter_add_(1, target[:, None], torch.full((len(target), 1), -1.0)).div_(len(y))
            torch.mm(scores, weight, out=into)
            dw.addmm_(scores.T, piece)
        ctx.save_for_backward(dx, dw)
        return loss

    @staticmethod
    def backward(ctx, gradient):
        dx, dw = ctx.saved_tensors
        return dx * gradient, dw * gradient, None, None


class Gpt(nn.Module):
    def __init__(self, checkpointed=False, chunks=0):
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.checkpointed, self.chunks = checkpointed, chunks

    def forward(self, x, y):
        h = self.embed(x) + self.place.weight
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if self.checkpointed else block(h)
        h, y = self.norm(h).flatten(0, 1), y.flatten()
        if self.chunks:
            return ChunkedLoss.apply(h, self.head.weight, y, self.chunks)
        return F.cross_entropy(self.head(h), y)


def loops(module, inputs):
    """Name -> a module and its step, from the forward to the gradients, which returns the loss."""
    def plain(run):
        def step():
            loss = run(*inputs)
            loss.backward()
            return loss.detach()

        return step

    def like(**options):
        other = Gpt(**options)
        other.load_state_dict(module.state_dict())
        return other

    eager = copy.deepcopy(module)
    yield "eager", eager, plain(eager)
    for name, other in (("checkpoint", like(checkpointed=True)), ("chunked loss by hand, 8", like(chunks=8))):
        yield name, other, plain(other)
    both = like(checkpointed=True, chunks=8)
    yield "checkpoint and chunked loss, 8", both, plain(both)
    for n in (2, 8):
        mine = copy.deepcopy(module)

        def accumulated(mine=mine, n=n):
            total = 0
            for part in zip(*(t.chunk(n) for t in inputs), strict=True):
                loss = mine(*part) / n
                loss.backward()
                total = total + loss.detach()
            return total

        yield f"accumulation over {n}", mine, accumulated
    for techniques, budgets in (("default", ("60%",)), ("all", ("60%", "35%", "25%", "20%"))):
        for budget in budgets:
            torch._dynamo.reset()
            mine = copy.deepcopy(module)
            run = lowtide.torch.optimize(mine, inputs, budget=budget, techniques=techniques, costs="measured", time=3,
                                         fallback="error")
            words = ", ".join(lowtide.torch.reports()[-1].transforms)
            yield f"Lowtide, {techniques}, {budget}" + (f": {words}" if words else ""), mine, plain(run)
    torch._dynamo.reset()
    mine = copy.deepcopy(module)
    with torch._functorch.config.patch(activation_memory_budget=0.2):
        run = torch.compile(mine, backend="aot_eager")
        run(*inputs)
    yield "activation_memory_budget=0.2", mine, plain(run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="of timed steps (15)")
    parser.add_argument("--out", type=Path, default=Path("build/bench/torch-parts.md"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    inputs = tuple(torch.randint(0, WORDS, (BATCH, TOKENS)) for _ in range(2))
    ways, seen = list(loops(Gpt(), inputs)), {}
    for name, module, step in ways:
        loss = step()
        seen[name] = loss, [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
    peaks = {}
    for name, module, step in ways:
        peaks[name] = peak_rise(step)
        module.zero_grad()
    times = {name: [] for name, _, _ in ways}
    for _ in range(arguments.rounds):
        for name, module, step in ways:
            began = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - began)
            module.zero_grad()
    loss, gradients = seen["eager"]
    table = ["| | peak, MB | ratio | time, % | loss equal | gradients equal | largest difference |",
             "| --- | ---: | ---: | ---: | --- | ---: | ---: |"]
    for name, _, _ in ways:
        got, mine = seen[name]
        most = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(mine, gradients, strict=True))
        late = 100 * (statistics.median(a / b for a, b in zip(times[name], times["eager"], strict=True)) - 1)
        table.append(f"| {name} | {peaks[name] / 1e6:.1f} | {peaks[name] / peaks['eager']:.2f} | {late:+.0f} | "
                     f"{'yes' if torch.equal(got, loss) else 'no'} | {sum(map(torch.equal, mine, gradients))} of "
                     f"{len(gradients)} | {most:.0e} |")
        print(table[-1], file=sys.stderr, flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
