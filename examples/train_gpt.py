"""Train a small GPT, letter by letter, on the pages of this repository, within a budget of memory.

    python examples/train_gpt.py --budget 50% --compare

`lowtide.torch.optimize` is all that differs from a script without a budget. With --compare the same training
runs again without a plan, and the losses of every step are compared to the last bit.
"""
import argparse
import copy
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import lowtide.torch

ROOT = Path(__file__).resolve().parents[1]
BATCH, LENGTH, WIDTH, HEADS, LAYERS, DROPOUT = 8, 128, 96, 6, 4, 0.1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = (part.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.out(mixed), DROPOUT, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), DROPOUT, self.training)


class Gpt(nn.Module):
    """Its result is the loss: what is computed within the module is planned with it."""

    def __init__(self, letters):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def forward(self, text, following):
        x = self.blocks(self.letters(text) + self.places.weight)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), following.flatten())


def read_pages():
    """All pages as one row of letters' numbers, and how many letters there are."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    return torch.tensor([number[letter] for letter in text]), len(letters)


def batch_of(text):
    starts = torch.randint(len(text) - LENGTH, (BATCH,)).tolist()
    rows = torch.stack([text[start:start + LENGTH + 1] for start in starts])
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def train(model, text, steps, every, budget=None, techniques="default"):
    """The losses of all steps; with a budget the model is planned."""
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run = model
    if budget:
        print(f"measuring and planning within {budget}", flush=True)
        run = lowtide.torch.optimize(model, batch_of(text), budget=budget, optimizer=optimizer,
                                     techniques=techniques)
        report = lowtide.torch.reports()[-1]
        print(report, *report.techniques, sep="\n  ")
    torch.manual_seed(2)
    losses = []

    def step(inputs):
        loss = run(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())

    for i in range(1, steps + 1):
        inputs = batch_of(text)
        if i % every:
            began = time.perf_counter()
            step(inputs)
            seconds = time.perf_counter() - began
            continue
        peak = lowtide.torch.measure_peak(step, inputs, held=(model, optimizer))
        kept = f"of {report.budget / 1e6:.1f} " if budget else ""
        print(f"step {i:4}  loss {losses[-1]:.3f}  peak {peak / 1e6:.1f} {kept}MB  {1000 * seconds:.0f} ms", flush=True)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="50%", help='bytes ("20MB"), or a share of the peak without a plan (50%%)')
    parser.add_argument("--techniques", default="default",
                        help='what the plan may use; "all": parts too, with gradients that differ in their last digits')
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20, help="steps between lines, at least 2 (20)")
    parser.add_argument("--compare", action="store_true", help="train without a plan as well")
    arguments = parser.parse_args()
    if arguments.compare:
        torch.set_num_threads(1)  # on several, PyTorch's own first step differs from run to run on some CPUs
    text, letters = read_pages()
    torch.manual_seed(0)
    model = Gpt(letters)
    plain = copy.deepcopy(model)
    try:
        losses = train(model, text, arguments.steps, arguments.every, arguments.budget, arguments.techniques)
    except lowtide.torch.BudgetError as error:  # which names the smallest budget that was found
        raise SystemExit(str(error)) from None
    if arguments.compare:
        print("without a plan")
        expected = train(plain, text, arguments.steps, arguments.every)
        found, expected = torch.stack(losses), torch.stack(expected)
        same = torch.equal(found, expected) and all(
            map(torch.equal, model.state_dict().values(), plain.state_dict().values()))
        how = "equal to the last bit" if same else "NOT equal"
        if lowtide.torch.reports()[-1].transforms and not same:
            how = f"not equal, since parts add up gradients in another order: losses differ by {(found - expected).abs().max():.1e}"
        print(f"{len(losses)} losses and all parameters are {how}")


if __name__ == "__main__":
    main()
