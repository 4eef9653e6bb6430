"""Training steps of several models under several budgets: peaks, bits, times."""

from __future__ import annotations

import torch

from ..convolutions import Autocast, large_resnet, resnet, unet
from ..language import Attention, gpt, large_gpt
from ..measure import clean
from ..plans import check_budgets, check_plan
from ..section import Context

_SHARES = ("60%", "80%", "40%")
_NO_COPIES = "recompute,in_place"


def gpt_bf16(context: Context) -> None:
    module, inputs = gpt(context, torch.bfloat16)
    beside = check_budgets(context, "GPT bf16", module, inputs, _SHARES)
    if context.has_time(10, "GPT bf16 60%, no copies"):
        check_plan(context, "GPT bf16 60%, no copies", module, inputs, "60%", beside, techniques=_NO_COPIES)


def gpt_f32(context: Context) -> None:
    """With dropout; then the same under autocast."""
    module, inputs = gpt(context, layers=8, batch=8, dropout=0.1)
    beside = check_budgets(context, "GPT f32 dropout", module, inputs, ("60%",), techniques=_NO_COPIES)
    if context.has_time(10, "GPT f32 dropout act:35%"):
        check_plan(context, "GPT f32 dropout act:35%", module, inputs, "act:35%", beside, techniques=_NO_COPIES)
    del beside
    if context.has_time(15, "GPT autocast dropout"):
        check_budgets(context, "GPT autocast dropout", Autocast(module, context.device), inputs, ("60%",))


def large_gpt_bf16(context: Context) -> None:
    module, inputs = large_gpt(context)
    check_budgets(context, "large GPT bf16", module, inputs, _SHARES)


def unet_f32(context: Context) -> None:
    module, inputs = unet(context)
    check_budgets(context, "U-Net f32", module, inputs, _SHARES)


def resnet_autocast(context: Context) -> None:
    body, inputs = resnet(context)
    check_budgets(context, "ResNet autocast", Autocast(body, context.device), inputs, _SHARES)


def large_resnet_bf16(context: Context) -> None:
    module, inputs = large_resnet(context)
    check_budgets(context, "large ResNet bf16", module, inputs, _SHARES)


def attention_dropout(context: Context) -> None:
    """In f32 on a GPU its backward reads where its draws began on the host."""
    for name, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        what = f"attention dropout {name}"
        if not context.has_time(8, what):
            return
        with context.guarded(what):
            clean()
            torch.manual_seed(0)
            module = Attention(256).to(context.device, dtype)
            x = torch.randn(8, 512 if context.on_gpu else 32, 256, device=context.device, dtype=dtype)
            check_budgets(context, what, module, (x,), ("80%",), costs="measured")
