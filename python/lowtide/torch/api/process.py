"""`set_default`: options of the whole process, for frameworks that choose a backend by name and pass no options."""

from __future__ import annotations

import enum
import functools
import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from ...frontend import defaults
from ..settings import Settings, StepOptions, check_names

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    class DefaultOptions(StepOptions, total=False):
        """The `Settings` that `set_default` takes, without the budget, for type checkers."""

        fallback: Literal["warn", "error"]

_MODELS_OWN = ("optimizer", "update")  # options that are of one model
_NAME = "LOWTIDE"
_OF_TORCHTITAN = "torchtitan.distributed.compile", "_maybe_regional_inductor_backend"  # what chooses its compiler
_OURS = "_lowtide_chosen"


def set_default(*, budget: int | str | None = None, **options: Unpack[DefaultOptions]) -> None:
    """Options for all later calls of this process that do not give them: of `optimize`, `step` and `backend="lowtide"`.

    budget, options: settings.Settings, without `optimizer` and `update`.  They replace those of an earlier call; `set_default()`
    removes them.  All models that are compiled without options of their own share the budget.  Options that neither a call nor
    set_default gives are read from the environment: LOWTIDE_BUDGET, LOWTIDE_TECHNIQUES, ... (frontend/defaults.py).

    Where Hugging Face's accelerate is installed, "lowtide" becomes one of its backends: of `Accelerator(dynamo_backend="lowtide")`
    and of `TrainingArguments(torch_compile_backend="lowtide")`, which accept the names of an enumeration alone.  Where torchtitan
    is imported, `CompileConfig(backend="lowtide")` compiles its models with flex attention, too.

    Raises ValueError or TypeError that names the wrong option.
    """
    for name in _MODELS_OWN:
        if name in options:
            raise TypeError(f"{name!r} belongs to one model: give it to optimize or torch.compile, not to set_default")
    given = {**({} if budget is None else {"budget": budget}), **options}
    check_names(given)
    Settings(**{"budget": "100%", **given})  # type: ignore[arg-type]
    defaults.replace(given)
    if importlib.util.find_spec("accelerate") is not None:
        add_member(importlib.import_module("accelerate.utils").DynamoBackend, _NAME)
    _register_with_torchtitan()


def _register_with_torchtitan() -> None:
    """Let torchtitan compile flex attention with our backend.  torchtitan accepts two names alone, since other backends have no kernel of
    flex attention; Lowtide has one, with fused kernels."""
    module, name = sys.modules.get(_OF_TORCHTITAN[0]), _OF_TORCHTITAN[1]
    real = getattr(module, name, None)
    if real is None or hasattr(real, _OURS):
        return

    @functools.wraps(real)
    def chosen(model: Any, backend: Any) -> Any:
        return backend if backend == _NAME.lower() else real(model, backend)

    setattr(chosen, _OURS, True)
    setattr(module, name, chosen)


def add_member(names: type[enum.Enum], name: str) -> None:
    """Add a name to an enumeration whose values are its names."""
    if name in names.__members__:
        return
    mixed_in = next((base for base in names.__mro__[1:] if base not in (enum.Enum, object) and not issubclass(base, enum.Enum)), object)
    member = mixed_in.__new__(names, *(() if mixed_in is object else (name,)))
    member._name_ = member._value_ = name
    names._member_names_.append(name)
    names._member_map_[name] = member
    names._value2member_map_[name] = member
    type.__setattr__(names, name, member)
