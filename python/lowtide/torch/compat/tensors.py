"""Private properties of PyTorch's tensors and storages."""

from __future__ import annotations

from typing import Any

import torch

from .versions import needed

with needed("properties of tensors"):
    from torch._prims_common import is_non_overlapping_and_dense_or_false as is_dense
    from torch._prims_common import suggest_memory_format

    _use_count = torch._C._storage_Use_Count
    copy_all = torch._foreach_copy_
    # a tensor over another's storage: (tensor, size, strides, elements that its offset is behind the tensor's)
    _guards: Any = torch._C._dynamo.guards
    reinterpret = _guards._reinterpret_tensor

__all__ = ["copy_all", "holders", "is_dense", "references", "reinterpret", "suggest_memory_format"]


def references(t: Any) -> int:
    """How many hold a tensor in C++; its own object in Python is one of them."""
    return t._use_count()


def holders(storage: torch.UntypedStorage) -> int:
    """How many hold a storage in C++: each tensor of it, and its own object in Python."""
    return _use_count(storage._cdata)
