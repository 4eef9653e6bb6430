"""Open dimensions: extents that the user sets, and the inputs of a model with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from .errors import ModelError
from .values import Value, of_type

Dims = Mapping[str, Union[int, Sequence[int]]]


def flat(dims: Dims | None) -> dict[str, int]:
    """By name ("batch") or by value and axis ("x.0"); a value with all its extents is written out.

    Raises ModelError for an extent that is no whole number of 0 or more.
    """
    found: dict[str, int] = {}
    for name, extent in (dims or {}).items():
        listed = isinstance(extent, Sequence) and not isinstance(extent, str)
        for i, one in enumerate(extent if isinstance(extent, Sequence) and listed else [extent]):
            if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < 2**31:
                raise ModelError(f"the dimension {name!r} is set to {one!r}: that must be a whole number from 0 to 2147483647")
            found[f"{name}.{i}" if listed else name] = int(one)
    return found


def parse(words: Sequence[str]) -> dict[str, Any]:
    """NAME=N or NAME=NxNxN, as the command takes them.  Raises ModelError."""
    found: dict[str, Any] = {}
    for word in words:
        name, _, text = word.rpartition("=")
        parts = text.lower().split("x")
        if not name or not all(part.isdigit() for part in parts):
            raise ModelError(f"--dim {word}: that must be NAME=N, as in batch=1 or x.0=1, or a whole shape, as in x=1x3x224x224")
        found[name] = int(parts[0]) if len(parts) == 1 else tuple(map(int, parts))
    return found


def inputs(graph: Any, dims: Mapping[str, int]) -> Iterator[tuple[str, Value]]:
    """The inputs of a graph that nobody has given a default, with the extents that the user has set.

    Raises ModelError that names every open dimension.
    """
    defaults = {tensor.name for tensor in graph.initializer}
    given = [value for value in graph.input if value.name not in defaults]
    missing, some = [], []
    for proto in given:
        value = of_type(proto.type, proto.name, dims)
        if value.shape is None:
            own = {key: extent for key, extent in dims.items() if key.rpartition(".")[0] == proto.name}
            shape = tuple(own.get(f"{proto.name}.{i}") for i in range(len(own))) or None
            missing += [] if shape else [f"--dim {proto.name}=1x128"]
        else:
            shape = tuple(dims.get(f"{proto.name}.{i}", extent) for i, extent in enumerate(value.shape))
            missing += [_option(proto, i) for i, extent in enumerate(shape) if extent is None]
        some += [proto.name] if shape is None or None in shape else []
        if not some:
            yield proto.name, Value(value.dtype, shape)
    if some:
        names = ", ".join(f"'{name}'" for name in some)
        raise ModelError(f"the extents of the input{'s' if len(some) > 1 else ''} {names} are open: set them, as in "
                         f"{' '.join(dict.fromkeys(missing))}")


def check_used(dims: Mapping[str, int], graph: Any, values: Mapping[str, Value]) -> None:
    """Raises ModelError for a name that is no dimension of the model."""
    named = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    declared = {dim.dim_param for value in (*graph.value_info, *graph.output)
                for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    for name in dims:
        value, _, axis = name.rpartition(".")
        rank = len(values[value].shape or ()) if value in values else 0
        if name not in named | declared and not (axis.isdigit() and int(axis) < rank):
            known = ", ".join(sorted(named)) or "none by name"
            shapes = ", ".join(f"{value.name}.0 to {value.name}.{len(values[value.name].shape or ()) - 1}" for value in graph.input
                               if value.name in values and values[value.name].shape)
            raise ModelError(f"the model has no dimension {name!r} to set: its inputs have {known}, and by axis {shapes}")


def _option(proto: Any, axis: int) -> str:
    name = proto.type.tensor_type.shape.dim[axis].dim_param
    if name:
        return f"--dim {name}=1" if " " not in name else f"--dim '{name}=1'"
    return f"--dim {proto.name}.{axis}=1"
