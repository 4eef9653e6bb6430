"""What a plan computes in another way the second time has the bits and the strides of the first.

Dropout's product from a mask, batch norm without its statistics, draws from a generator's state, gradients in their
parameter's layout: each for every number type, for mixed ones, for odd sizes and for strides of every kind.
"""

import itertools

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.dropout import apply as dropout_apply
from lowtide.torch.random_state import read_state, replay

aten = torch.ops.aten
REAL = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
COMPLEX = [torch.complex128, torch.complex64]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is here"))]

# what a tensor of four dimensions may lie like in its storage
LAYOUTS = {
    "rows": lambda x: x,
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "permuted": lambda x: x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0),
    "a part of its rows": lambda x: torch.cat([x, x], 3)[..., 1:1 + x.shape[3]],
    "a part of its channels": lambda x: torch.cat([x, x], 1)[:, 1:1 + x.shape[1]],
    "every second": lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
    "expanded": lambda x: x[:, :, :1].expand_as(x),
    "expanded in front": lambda x: x[:1].expand_as(x),
    "channels last, expanded": lambda x: x[..., :1].to(memory_format=torch.channels_last).expand_as(x),
}
SIZES = [(3, 5, 7, 9), (2, 8, 4, 4), (1, 1, 3, 1), (2, 0, 3, 3)]


def alike(a, b):
    """The same number type, shape, strides and bits (any NaN is any other)?"""
    if (a.dtype, a.shape, a.stride()) != (b.dtype, b.shape, b.stride()):
        return False
    if a.dtype.is_complex:
        return alike(torch.view_as_real(a), torch.view_as_real(b))
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return bool(((a.contiguous().view(whole) == b.contiguous().view(whole)) | (a.isnan() & b.isnan())).all())


def numbers(size, dtype, device="cpu"):
    """Numbers of all magnitudes, and all that are special."""
    x = torch.randn(size, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    if x.numel() > 20:
        x *= torch.logspace(-9, 9, x.numel(), dtype=torch.float64).reshape(size)
        tiny = torch.finfo(dtype).tiny
        special = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), tiny, -tiny / 4, torch.finfo(dtype).max]
        x.view(-1)[3:3 + len(special)] = torch.tensor(special, dtype=x.dtype)
    return x.to(dtype).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dropout_from_its_mask(layout, device):
    torch.manual_seed(0)
    types = REAL + COMPLEX if device == "cpu" else REAL
    for size, dtype, p in itertools.product(SIZES, types, (0.1, 0.15, 0.3, 0.5, 0.9, 1e-9, 1 - 1e-9, 1.0, 1)):
        x = LAYOUTS[layout](numbers(size, dtype, device))
        made, mask = aten.native_dropout(x, p, True)
        if x.numel():
            assert alike(dropout_apply(x, mask, p), made), f"{layout} {size} {dtype} p={p}"
        else:
            assert dropout_apply(x, mask, p).shape == made.shape


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [(), (1,), (1001,), (33, 31)])
def test_dropout_of_other_ranks(size, device):
    torch.manual_seed(0)
    for dtype, p in itertools.product(REAL, (0.1, 0.15, 0.7)):
        x = numbers(size, dtype, device).t() if len(size) == 2 else numbers(size, dtype, device)
        made, mask = aten.native_dropout(x, p, True)
        assert alike(dropout_apply(x, mask, p), made), f"{size} {dtype} p={p}"
