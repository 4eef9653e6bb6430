"""Train a small U-Net to find discs in noisy pictures, within a budget of memory.

    python examples/train_unet.py --budget 60% --compare

`torch.compile(..., backend="lowtide")` is all that differs from a script without a budget. With --compare the
same training runs again without a plan, and the losses of every step are compared to the last bit.
"""
import argparse
import copy
import time

import torch
import torch.nn.functional as F
from torch import nn

import lowtide.torch

BATCH, SIZE, CHANNELS = 4, 64, 16


def block(inner, outer):
    return nn.Sequential(nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
                         nn.Conv2d(outer, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """Its result is the loss: what is computed within the module is planned with it."""

    def __init__(self, c=CHANNELS):
        super().__init__()
        self.down1, self.down2, self.middle = block(1, c), block(c, 2 * c), block(2 * c, 4 * c)
        self.lift2, self.lift1 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.up2, self.up1, self.out = block(4 * c, 2 * c), block(2 * c, c), nn.Conv2d(c, 1, 1)

    def forward(self, images, discs):
        a = self.down1(images)
        b = self.down2(F.max_pool2d(a, 2))
        x = self.middle(F.max_pool2d(b, 2))
        x = self.up2(torch.cat([self.lift2(x), b], 1))
        x = self.up1(torch.cat([self.lift1(x), a], 1))
        return F.binary_cross_entropy_with_logits(self.out(x), discs)


def pictures():
    """Noise with three discs in it, and the discs."""
    across = torch.arange(SIZE).float()
    centres, radii = SIZE * torch.rand(BATCH, 3, 2, 1, 1), 3 + 6 * torch.rand(BATCH, 3, 1, 1)
    far = (across.view(1, 1, -1, 1) - centres[:, :, 0]) ** 2 + (across - centres[:, :, 1]) ** 2
    discs = (far < radii**2).any(1, keepdim=True).float()
    return discs + 0.8 * torch.randn(BATCH, 1, SIZE, SIZE), discs


def train(model, steps, every, budget=None):
    """The losses of all steps; with a budget the model is planned at its first."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = model
    if budget:
        print(f"measuring and planning within {budget}", flush=True)
        run = torch.compile(model, backend="lowtide",
                            options={"budget": budget, "optimizer": optimizer})
    losses = []

    def step(inputs):
        loss = run(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())

    for i in range(1, steps + 1):
        inputs = pictures()
        if i == 1 or i % every:
            began = time.perf_counter()
            step(inputs)
            seconds = time.perf_counter() - began
            if i == 1 and budget:
                report = lowtide.torch.reports()[-1]
                print(report)
            continue
        peak = lowtide.torch.measure_peak(step, inputs, held=(model, optimizer))
        kept = f"of {report.budget / 1e6:.1f} " if budget else ""
        print(f"step {i:4}  loss {losses[-1]:.3f}  peak {peak / 1e6:.1f} {kept}MB  {1000 * seconds:.0f} ms", flush=True)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="60%", help='bytes ("20MB"), or a share of the peak without a plan (60%%)')
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20, help="steps between lines, at least 2 (20)")
    parser.add_argument("--compare", action="store_true", help="train without a plan as well")
    arguments = parser.parse_args()
    if arguments.compare:
        torch.set_num_threads(1)  # on several, PyTorch's own first step differs from run to run on some CPUs
    torch.manual_seed(0)
    model = UNet()
    plain = copy.deepcopy(model)
    try:
        losses = train(model, arguments.steps, arguments.every, arguments.budget)
    except torch._dynamo.exc.BackendCompilerFailed as error:  # a BudgetError inside names the smallest budget found
        raise SystemExit(str(error.inner_exception)) from None
    if arguments.compare:
        print("without a plan")
        expected = train(plain, arguments.steps, arguments.every)
        same = torch.equal(torch.stack(losses), torch.stack(expected)) and all(
            map(torch.equal, model.state_dict().values(), plain.state_dict().values()))
        how = "equal to the last bit" if same else "NOT equal"
        print(f"{len(losses)} losses, all parameters and all buffers are {how}")


if __name__ == "__main__":
    main()
