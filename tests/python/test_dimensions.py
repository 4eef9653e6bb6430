"""Every kind in the table of dimensions, split along each dimension that it declares, gives what the whole gives."""

import pytest

torch = pytest.importorskip("torch")

from dimension_cases import CASES, Make, aten
from dimension_support import TYPES, NotTheSame, OneOp

from lowtide import _core

# Kernels of GPUs alone, what fills memory with nothing in particular, and ops that are split by no operator of a name.
ELSEWHERE = {"aten._scaled_dot_product_flash_attention", "aten._scaled_dot_product_flash_attention_backward",
             "aten._scaled_dot_product_efficient_attention", "aten._scaled_dot_product_efficient_attention_backward",
             "aten._scaled_dot_product_cudnn_attention", "aten._scaled_dot_product_cudnn_attention_backward",
             "aten.empty", "aten.empty_like", "aten.new_empty", "aten._fused_rms_norm_backward",
             "aten.rrelu_with_noise_functional", "lowtide.batch_norm_stats", "lowtide.dropout_mask",
             "lowtide.random_state"}


def test_every_kind_has_a_case():
    assert set(_core.dimension_kinds()) - ELSEWHERE == set(CASES)


@pytest.mark.parametrize("kind", sorted(CASES))
def test_parts_give_the_whole(kind):
    for target, make, names in CASES[kind]:
        for name in ("f32", *names):
            torch.manual_seed(0)
            OneOp(target, make(Make(TYPES[name]))).check()
