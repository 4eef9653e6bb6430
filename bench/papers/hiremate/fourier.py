"""Neural operators of HiRemate's table 4, written from the papers that describe them: FNO (Li et al., 2020), U-FNO
(Wen et al., 2022), U-NO (Rahman et al., 2022).

A Fourier layer takes its input to frequencies, multiplies each low one by a matrix of complex weights, sets the others
to 0 and goes back, to a grid of another size if asked.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CONVOLUTIONS = {1: nn.Conv1d, 3: nn.Conv3d}


class Spectral(nn.Module):
    """modes: how many low frequencies are kept along each axis; but for the last, as many negative ones besides."""

    def __init__(self, inputs: int, outputs: int, modes: Sequence[int]) -> None:
        super().__init__()
        self.axes = tuple(range(-len(modes), 0))
        whole = slice(None)
        self.corners = [(whole, whole, *corner, slice(modes[-1])) for corner in
                        itertools.product(*((slice(m), slice(-m, None)) for m in modes[:-1]))]
        self.weights = nn.ParameterList(torch.randn(inputs, outputs, *modes, dtype=torch.cfloat) / inputs
                                        for _ in self.corners)

    def forward(self, x: Tensor, size: Sequence[int]) -> Tensor:
        given = torch.fft.rfftn(x, dim=self.axes)
        made = [torch.einsum("bi...,io...->bo...", given[corner], weight) for corner, weight in
                zip(self.corners, self.weights, strict=True)]
        return torch.fft.irfftn(spread(made, (*size[:-1], size[-1] // 2 + 1)), s=size, dim=self.axes)


def spread(corners: list[Tensor], size: Sequence[int]) -> Tensor:
    """Blocks at the corners of a grid of zeros, low and high along each axis but the last, where there are low ones."""
    corners = [F.pad(block, (0, size[-1] - block.shape[-1])) for block in corners]
    for axis in range(-2, -len(size) - 1, -1):
        between = list(corners[0].shape)
        between[axis] = size[axis] - 2 * between[axis]
        corners = [torch.cat((low, low.new_zeros(between), high), axis) for low, high in
                   zip(corners[::2], corners[1::2], strict=True)]
    return corners[0]


def pointwise(axes: int, *widths: int) -> nn.Sequential:
    """A perceptron at each point of the grid."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [CONVOLUTIONS[axes](inputs, outputs, 1), nn.GELU()]
    return nn.Sequential(*layers[:-1])


# ---- FNO


class FourierBlock(nn.Module):
    """A Fourier layer and a perceptron behind it, beside a product at each point."""

    def __init__(self, width: int, modes: Sequence[int]) -> None:
        super().__init__()
        self.spectral, self.mix = Spectral(width, width, modes), pointwise(len(modes), width, width, width)
        self.short = pointwise(len(modes), width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(self.spectral(x, x.shape[2:])) + self.short(x)


class Fno(nn.Module):
    """inputs: values at each point, its place among them.  padding: zeros behind the last axis, which has no period."""

    def __init__(self, inputs: int, modes: Sequence[int], width: int, blocks: int = 4, padding: int = 0) -> None:
        super().__init__()
        self.padding = padding
        self.lift = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(FourierBlock(width, modes) for _ in range(blocks))
        self.head = pointwise(len(modes), width, 2 * width, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.lift(x).movedim(-1, 1)
        if self.padding:
            x = F.pad(x, (0, self.padding))
        for i, block in enumerate(self.blocks):
            x = block(F.gelu(x) if i else x)
        if self.padding:
            x = x[..., :-self.padding]
        return self.head(x).movedim(1, -1)


# ---- U-FNO


def down(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv3d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm3d(outputs),
                         nn.LeakyReLU(0.1, inplace=True))


def up(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.ConvTranspose3d(inputs, outputs, 4, 2, 1), nn.LeakyReLU(0.1, inplace=True))


class SmallUNet(nn.Module):
    """Three levels down and up again, all of one width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.ModuleList((down(width, width, 2), nn.Sequential(down(width, width, 2), down(width, width, 1)),
                                   nn.Sequential(down(width, width, 2), down(width, width, 1))))
        self.up = nn.ModuleList((up(width, width), up(2 * width, width), up(2 * width, width)))
        self.head = nn.Conv3d(2 * width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        skipped = []
        for level in self.down:
            skipped.append(x)
            x = level(x)
        for level in self.up:
            x = torch.cat((skipped.pop(), level(x)), 1)
        return self.head(x)


class UFno(nn.Module):
    """Three Fourier layers, then three with a U-Net beside each. The grid is made larger by 8 along each axis: by zeros
    along the first, and by what lies at the border along the others."""

    def __init__(self, inputs: int, modes: Sequence[int], width: int) -> None:
        super().__init__()
        self.lift = nn.Linear(inputs, width)
        self.spectral = nn.ModuleList(Spectral(width, width, modes) for _ in range(6))
        self.short = nn.ModuleList(pointwise(3, width, width) for _ in range(6))
        self.nets = nn.ModuleList(SmallUNet(width) for _ in range(3))
        self.head = nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(x, (0, 0, 0, 8, 0, 8), "replicate")
        x = self.lift(F.pad(x, (0, 0, 0, 0, 0, 0, 0, 8))).movedim(-1, 1)
        for i, (spectral, short) in enumerate(zip(self.spectral, self.short, strict=True)):
            y = spectral(x, x.shape[2:]) + short(x)
            x = F.relu(y if i < 3 else y + self.nets[i - 3](x))
        return self.head(x[..., :-8, :-8, :-8].movedim(1, -1))


# ---- U-NO


def resized(x: Tensor, size: Sequence[int]) -> Tensor:
    return F.interpolate(x, size=size, mode="trilinear", align_corners=True)


class Operator(nn.Module):
    """A Fourier layer beside a product at each point, both onto another grid."""

    def __init__(self, inputs: int, outputs: int, modes: Sequence[int]) -> None:
        super().__init__()
        self.spectral, self.short = Spectral(inputs, outputs, modes), pointwise(3, inputs, outputs)
        self.norm = nn.InstanceNorm3d(outputs, affine=True)

    def forward(self, x: Tensor, size: Sequence[int]) -> Tensor:
        return F.gelu(self.norm(self.spectral(x, size) + resized(self.short(x), size)))


class Uno(nn.Module):
    """A U-shaped operator in space and time, from 10 steps to 40: the grid shrinks in space to an eighth and grows
    again, while it grows in time, and the first three levels are handed to the last three."""

    # of each operator: inputs and outputs in widths, the share of the grid in space and in time
    OPERATORS = ((1, 2, .75, 1), (2, 4, .5, 1), (4, 8, .25, 1.6), (8, 16, .125, 1.6), (16, 16, .125, 1.6),
                 (16, 8, .25, 1.6), (8, 4, .5, 2.4), (8, 2, .75, 3.2), (4, 2, 1, 4))

    def __init__(self, inputs: int, width: int, modes: Sequence[Sequence[int]], padding: int = 1) -> None:
        super().__init__()
        self.padding = padding
        self.lift = nn.Sequential(nn.Linear(inputs, width // 2), nn.GELU(), nn.Linear(width // 2, width), nn.GELU())
        self.operators = nn.ModuleList(Operator(a * width, b * width, m) for (a, b, _, _), m in
                                       zip(self.OPERATORS, modes, strict=True))
        self.head = nn.Sequential(nn.Linear(3 * width, 4 * width), nn.GELU(), nn.Linear(4 * width, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(self.lift(x).movedim(-1, 1), (0, self.padding))
        grid, skipped = x.shape[2:], [x]
        for i, (operator, (_, _, space, time)) in enumerate(zip(self.operators, self.OPERATORS, strict=True)):
            size = (int(space * grid[0]), int(space * grid[1]), int(time * grid[2]))
            x = operator(x, size)
            if i < 2:
                skipped.append(x)
            if i > 5:
                x = torch.cat((x, resized(skipped.pop(), size)), 1)
        return self.head(x[..., :-4 * self.padding].movedim(1, -1))
