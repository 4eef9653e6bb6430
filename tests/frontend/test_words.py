"""What people read: errors, which bits a plan keeps, sizes."""

import pytest
from lowtide.frontend.errors import BudgetError, CaptureError, LowtideWarning, OverBudgetWarning, fall_back, size_text, some
from lowtide.frontend.exactness import Exactness


@pytest.mark.parametrize(("size", "words"), [
    (0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (2048, "2 KiB"), (3 << 20, "3 MiB"), (5 << 30, "5 GiB"), (7 << 40, "7 TiB"),
    (4096 << 40, "4.1e+03 TiB")])
def test_sizes_have_three_digits(size, words):
    assert size_text(size) == words


def test_many_names_are_cut_off():
    names = [f"w{i}" for i in range(9)]
    assert some(names[:6]) == "w0, w1, w2, w3, w4, w5" and some(names, 2) == "w0, w1 and 7 more" and some([]) == ""


def test_an_unsupported_graph_runs_without_a_plan_or_is_an_error():
    with pytest.warns(LowtideWarning, match="^lowtide: this graph runs without a plan, so no budget is kept: it is odd$"):
        assert fall_back("it is odd", "warn", 5) == 5
    with pytest.raises(CaptureError, match="it is odd"):
        fall_back("it is odd", "error", 5)
    assert issubclass(OverBudgetWarning, LowtideWarning)
    error = BudgetError("none", 1, 2, 3)
    assert (str(error), error.floor, error.smallest, error.budget) == ("none", 1, 2, 3)


SUMS = dict(sums=("head.weight",), parts=(4,))
MANY = tuple(f"w{i}" for i in range(6))


@pytest.mark.parametrize(("exactness", "words"), [
    (Exactness(), "bit-identical"),
    (Exactness(hoisted=True), "bit-identical, if the loss is scaled by powers of two only"),
    (Exactness(tried="AVX2"), "bit-identical, rows tested here with AVX2"),
    (Exactness(traced=("a product", "a sum")),
     "bit-identical to the traced step; eager execution may differ: a product, and a sum"),
    (Exactness(**SUMS), "bit-identical but for the gradients of head.weight (sums over 4 parts)"),
    (Exactness(sums=MANY, parts=(2, 4), in_single=True, updates=True),
     "bit-identical but for the parameters of w0, w1, w2, w3 and 2 more (sums over 2 or 4 parts in single precision)"),
    (Exactness(sums=MANY, parts=(4,), whole=True, masks=True),
     "bit-identical but for all gradients (sums over 4 parts, as in a loop over 4 microbatches with slices of the "
     "whole batch's masks)"),
    (Exactness(sums=("loss", "buffers"), parts=(2,), follows=("w",)),
     "bit-identical but for the loss and buffers (sums over 2 parts) and the gradients of w (computed "
     "differently, or from such sums)"),
    (Exactness(fused=True), "bit-identical to the same fused kernels without a plan; eager execution differs as it does from "
     "torch.compile"),
    (Exactness(fused=True, atomic=("table.weight",)),
     "bit-identical to the same fused kernels without a plan but for the gradients of table.weight (added up by atomics, whose order "
     "may change from run to run); eager execution differs as it does from torch.compile"),
])
def test_which_bits_are_kept_is_said_in_words(exactness, words):
    assert str(exactness) == words


def test_results_that_do_not_depend_on_sums_over_parts_are_equal():
    assert Exactness().equal and Exactness(hoisted=True, tried="AVX2").as_eager
    assert Exactness(traced=("a sum",)).equal and not Exactness(traced=("a sum",)).as_eager
    assert Exactness(fused=True).equal and not Exactness(fused=True).as_eager
    assert not Exactness(fused=True, atomic=("w",)).equal and Exactness(fused=True, atomic=("w",)).is_kept
    for other in (Exactness(**SUMS), Exactness(follows=("w",))):
        assert not other.equal and not other.as_eager
