"""How ranks share a training step: a mesh of data-parallel by tensor-parallel ranks, and what each of them holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Union

import torch

from ...frontend.errors import CaptureError

Style = Literal["column", "row", "gather"]
Rule = Union[Mapping[str, Style], Callable[[str, torch.nn.Module], "Style | None"]]


@dataclass(frozen=True)
class Shard:
    """What each rank holds.

    data: "fsdp" (each data-parallel rank holds a part of each parameter, gradient and optimizer state) or "ddp" (all of it).
    tensor: the tensor-parallel style of each module that ranks divide: a dict from patterns of module paths ("layers.*.wq"), or a
        function of path and module.  "column" divides a Linear's outputs, "row" its inputs, or the vocabulary of an Embedding, and
        "gather" its outputs, which are put together again.
    sequence: between these modules, are activations divided along dimension 1 of (batch, sequence, width)?
    units: patterns of the modules that FSDP gathers together; by default the children of each outermost ModuleList.
    reshard: are gathered parameters freed after the forward, and gathered again for the backward?
    master: do parameters, gradients and optimizer state of FSDP have 4 bytes a number, whatever the model computes in?
    repeat: the path of a ModuleList or Sequential of equal modules.  Four of them are traced, and the graph has all.
    link: bytes a second and latency between data-parallel ranks, "50GB/s,20us"; by default the device's link to its peers.
    """

    data: Literal["fsdp", "ddp"] = "fsdp"
    tensor: Rule = field(default_factory=dict)
    sequence: bool = False
    units: tuple[str, ...] | str = ()
    reshard: bool = True
    master: bool = False
    link: str | None = None
    repeat: str | None = None

    def __post_init__(self) -> None:
        if self.data not in ("fsdp", "ddp"):
            raise ValueError(f'shard must be "fsdp" or "ddp", or a Shard with one of these, not {self.data!r}')
        if self.master and self.data != "fsdp":
            raise ValueError("master numbers are FSDP's; with DDP give a dtype of 4 bytes")
        for pattern, style in self.tensor.items() if isinstance(self.tensor, Mapping) else ():
            check_style(pattern, style)


@dataclass(frozen=True)
class Ranks:
    """A mesh of dp times tp ranks, of which one is captured."""

    dp: int
    tp: int
    shard: Shard


def check_style(path: str, style: Any) -> Any:
    if style not in ("column", "row", "gather", None):
        raise ValueError(f'{path}: a tensor-parallel style is "column", "row" or "gather", not {style!r}')
    return style


def ranks_of_mesh(mesh: Any, shard: Any) -> Ranks | None:
    """The arguments of `capture`; None for a step that no ranks share.  Raises ValueError for wrong ones."""
    if mesh is None:
        if shard is not None:
            raise ValueError("shard says what each rank of a mesh holds: give mesh=(dp, tp) too")
        return None
    sizes = tuple(mesh) if isinstance(mesh, (tuple, list)) else ()
    if len(sizes) != 2 or not all(isinstance(n, int) and n >= 1 for n in sizes):
        raise ValueError(f"mesh must be (dp, tp), the numbers of data-parallel and of tensor-parallel ranks, not {mesh!r}")
    shard = shard if isinstance(shard, Shard) else Shard(shard or "fsdp")
    if sizes[1] > 1 and not shard.tensor:
        raise ValueError(f'a mesh with {sizes[1]} tensor-parallel ranks needs the modules that they divide: '
                         'shard=Shard("fsdp", tensor={"layers.*.wq": "column", ...})')
    return Ranks(*sizes, shard)


def matcher(patterns: Any) -> Callable[[str], bool]:
    """Whether a path of a module matches one of the patterns, as those of file names; no "*" stands for a dot."""
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)

    def matches(path: str) -> bool:
        names = path.split(".")
        return any(len(names) == len(parts) and all(map(fnmatchcase, names, parts))
                   for parts in (pattern.split(".") for pattern in patterns))

    return matches


def divided(size: int, parts: int, what: str) -> int:
    """The size of each of these equal parts."""
    if size % parts:
        raise CaptureError(f"{what}: {size} cannot be divided among {parts} tensor-parallel ranks")
    return size // parts


def keep_few(model: torch.nn.Module, path: str, few: int) -> int:
    """Leaves so many of the equal modules at `path`, in place; returns how many there were.

    Raises CaptureError if they are not equal, as far as their parts, settings and sizes say.
    """
    try:
        layers = model.get_submodule(path)
    except AttributeError:
        layers = None
    if not isinstance(layers, (torch.nn.ModuleList, torch.nn.Sequential)):
        raise CaptureError(f"repeat: {path!r} is no ModuleList or Sequential of the model")
    found = [(repr(layer), [(name, t.shape, t.dtype) for name, t in (*layer.named_parameters(), *layer.named_buffers())])
             for layer in layers]
    for i, one in enumerate(found):
        if one != found[0]:
            raise CaptureError(f"repeat: {path}.0 and {path}.{i} are not equal; leave repeat out")
    owners: dict[int, int] = {}
    for i, layer in enumerate(layers):
        for name, t in layer.named_parameters():
            if owners.setdefault(id(t), i) != i:
                raise CaptureError(f"repeat: {path}.{owners[id(t)]} and {path}.{i} share {name}; leave repeat out")
    if len(found) > few:
        del layers[few:]
    return len(found)
