"""Numbers that are hard on kernels, tensors that lie in every way in their storages, and the comparison of bits."""

import torch

REAL = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
COMPLEX = [torch.complex128, torch.complex64]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]

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


def numbers(size, dtype, device="cpu"):
    """Numbers of all magnitudes, and all that are special."""
    if not (dtype.is_floating_point or dtype.is_complex):
        lowest = 0 if dtype in (torch.bool, torch.uint8) else -9
        return torch.randint(lowest, 2 if dtype == torch.bool else 10, size).to(dtype).to(device)
    x = torch.randn(size, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    if x.numel() > 20:
        x *= torch.logspace(-9, 9, x.numel(), dtype=torch.float64).reshape(size)
        tiny = torch.finfo(dtype).tiny
        special = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), tiny, -tiny / 4, torch.finfo(dtype).max]
        x.view(-1)[3:3 + len(special)] = torch.tensor(special, dtype=x.dtype)
    return x.to(dtype).to(device)


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


def same_bytes(a, b):
    """The same number type, shape, strides and bytes, those of NaNs too?"""
    if (a.dtype, a.shape, a.stride()) != (b.dtype, b.shape, b.stride()):
        return False
    a, b = a.contiguous().reshape(-1), b.contiguous().reshape(-1)
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8)) if a.numel() else True
