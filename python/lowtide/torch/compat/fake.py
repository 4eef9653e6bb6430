"""Fake tensors, with which PyTorch traces."""

from .versions import needed

with needed("fake tensors"):
    from torch._guards import detect_fake_mode
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
        FakeTensor,
        FakeTensorMode,
        UnsupportedOperatorException,
    )
    from torch._subclasses.fake_tensor import unset_fake_temporarily as without_fake

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
           "UnsupportedOperatorException", "detect_fake_mode", "without_fake"]
