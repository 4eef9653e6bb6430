"""Every kind in the table of dimensions, split along each dimension that it declares, gives what the whole gives."""

import pytest

torch = pytest.importorskip("torch")

from dimension_cases import CASES, Make, aten
from dimension_support import TYPES, NotTheSame, OneOp
from lowtide.torch.compat.versions import before
from lowtide.torch.tensors.arguments import tensors_in
from lowtide.torch.transforms.parts import PACKED
from torch.utils import _pytree as pytree

from lowtide import _core

# Kernels of GPUs alone, what fills memory with nothing in particular, and ops that are split by no operator of a name.
ELSEWHERE = {"aten._scaled_dot_product_flash_attention", "aten._scaled_dot_product_flash_attention_backward",
             "aten._scaled_dot_product_efficient_attention", "aten._scaled_dot_product_efficient_attention_backward",
             "aten._scaled_dot_product_cudnn_attention", "aten._scaled_dot_product_cudnn_attention_backward",
             "aten.empty", "aten.empty_like", "aten.new_empty", "aten._fused_rms_norm_backward",
             "aten.rrelu_with_noise_functional", "lowtide.batch_norm_stats", "lowtide.dropout_mask",
             "lowtide.cluster", "lowtide.pointwise", "lowtide.random_state"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for one another cost more than these small kernels."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_every_kind_has_a_case():
    assert set(_core.dimension_kinds()) - ELSEWHERE == set(CASES)


@pytest.mark.parametrize("kind", sorted(CASES))
def test_parts_give_the_whole(kind):
    for target, make, names in CASES[kind]:
        for name in ("f32", *names):
            torch.manual_seed(0)
            OneOp(target, make(Make(TYPES[name]))).check()


def wider(t, dim):
    """t as a slice of what is twice as wide along a dimension."""
    packed = t.contiguous()
    return torch.cat([packed, ~packed if t.dtype == torch.bool else torch.full_like(packed, 3)], dim).narrow(dim, 0, t.shape[dim])


def as_a_slice(given, name, index, dim):
    value = given[name]
    if index is None:
        return given | {name: wider(value, dim)}
    return given | {name: [wider(t, dim) if i == index else t for i, t in enumerate(value)]}


def runs_alike(target, given, other):
    """Do two calls give the same, up to the order of sums?"""
    found = []
    for call in (given, other):
        torch.manual_seed(7)
        try:
            found.append([t.to(torch.complex128) for t in tensors_in(target(**call))])
        except RuntimeError:
            return False
    return all(torch.allclose(a, b, rtol=2e-2, atol=2e-2, equal_nan=True) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no GPU"))])
def test_parts_may_be_slices_of_what_is_larger(device):
    """Parts read slices of whole tensors.  Kernels that go by other strides than those of their operands are listed."""
    wrong = {}
    for cases in CASES.values():
        for target, make, names in cases:
            for type_ in ("f32", *names):
                torch.manual_seed(0)
                given = pytree.tree_map_only(torch.Tensor, lambda t: t.to(device), make(Make(TYPES[type_])))
                if device == "cuda" and not runs_alike(target, given, given):  # a kernel of the CPU alone
                    continue
                for name, value in given.items():
                    several = isinstance(value, (list, tuple))
                    for i, t in enumerate(value if several else [value]):
                        for dim in range(t.dim() if isinstance(t, torch.Tensor) else 0):
                            if not runs_alike(target, given, as_a_slice(given, name, i if several else None, dim)):
                                wrong.setdefault(target, set()).add(name)
    assert {target: more for target, names in wrong.items() if (more := names - PACKED.get(target, set()))} == {}
    if device == "cpu" and before(2, 14):  # whose group norms go by the strides of their operands
        assert wrong == PACKED


# Operands that are crops of what the parts have, and of which dimension of that.
CROPS = [
    (aten.clone.default, 0, lambda make: {"self": make(9, 5)[:8]}),
    (aten.clone.default, 1, lambda make: {"self": make(3, 9, 5)[:, :8]}),
    (aten.mm.default, 0, lambda make: {"self": make(9, 5)[:7], "mat2": make(5, 6)}),
    (aten.mm.default, 1, lambda make: {"self": make(5, 9)[:, :8].t(), "mat2": make(5, 6)}),
    (aten.add.Tensor, 0, lambda make: {"self": make(9, 5)[:8], "other": make(8, 5)}),
    (aten.sum.dim_IntList, 0, lambda make: {"self": make(9, 5)[:8], "dim": [0]}),
    (aten.mean.dim, 0, lambda make: {"self": make(9, 5)[:8], "dim": [0]}),
    (aten._log_softmax.default, 0, lambda make: {"self": make(9, 5)[:8], "dim": 1, "half_to_float": False}),
    (aten.nll_loss_forward.default, 0, lambda make: {"self": make(9, 5)[:8], "target": make.index(5, 8), "weight": None,
                                                  "reduction": 1, "ignore_index": -100}),
]




@pytest.mark.parametrize(("target", "dim", "make"), CROPS, ids=[f"{c[0]._opname}{i}" for i, c in enumerate(CROPS)])
def test_parts_of_a_crop(target, dim, make):
    op = OneOp(target, make(Make(torch.float32)))
    op.check()
    op.check_crop(0, dim)


# What keeps its shape, and mixes what lies along the dimension: by a rule for another kind it would pass.
LIES = [
    (aten.cumsum.default, {"self": (6, 5), "dim": 0}, "aten.exp"),
    (aten._softmax.default, {"self": (6, 5), "dim": 0, "half_to_float": False}, "aten.exp"),
    (aten.flip.default, {"self": (6, 5), "dims": [0]}, "aten.exp"),
    (aten.sort.default, {"self": (6, 5), "dim": 0}, "aten.log_sigmoid_forward"),
    (aten.roll.default, {"self": (6, 5), "shifts": [1], "dims": [0]}, "aten.exp"),
    (aten.amax.default, {"self": (6, 5), "dim": [0]}, "aten.sum"),
    (aten.prod.dim_int, {"self": (6, 5), "dim": 0}, "aten.sum"),
    (aten.mean.dim, {"self": (6, 5), "dim": [0]}, "aten.sum"),
    (aten.sum.dim_IntList, {"self": (6, 5), "dim": [0]}, "aten.mean"),
    (aten.logsumexp.default, {"self": (6, 5), "dim": [0]}, "aten.mean"),
    (aten.mm.default, {"self": (6, 6), "mat2": (6, 6)}, "aten.maximum"),
    (aten.inverse.default, {"self": (6, 6)}, "aten.exp"),
]


@pytest.mark.parametrize(("target", "shapes", "kind"), LIES, ids=[t._opname for t, _, _ in LIES])
def test_a_wrong_rule_is_seen(target, shapes, kind):
    make = Make(torch.float32)
    given = {name: make(*value) if isinstance(value, tuple) else value for name, value in shapes.items()}
    OneOp(target, given).check()
    with pytest.raises(NotTheSame):
        OneOp(target, given, kind).check()


def test_declared_dimensions_of_each_kind():
    """A rule that says nothing would pass as well: the dimensions of operands along which some kinds must go."""
    def carried(kind):
        return set().union(*(OneOp(target, make(Make(torch.float32))).check() for target, make, _ in CASES[kind]))

    assert {("self", 0), ("self", 1), ("mat2", 0), ("mat2", 1)} == carried("aten.mm")
    assert {("mat1", 0), ("mat2", 1), ("self", 0), ("mat1", 1)} <= carried("aten.addmm")
    assert {("input", 0), ("input", 1), ("weight", 0), ("weight", 1), ("bias", 0)} == carried("aten.convolution")
    assert {("grad_output", 0), ("input", 0), ("weight", 0)} <= carried("aten.convolution_backward")
    assert {("input", 0), ("input", 1)} == carried("aten.native_layer_norm")
    assert {("indices", 0), ("indices", 1), ("weight", 1)} == carried("aten.embedding")
    assert {("self", 0), ("target", 0)} == carried("aten.nll_loss_forward")
    assert {("query", 0), ("query", 1), ("query", 2), ("key", 0), ("attn_mask", 0)} <= carried(
        "aten._scaled_dot_product_flash_attention_for_cpu")
    assert {("self", 1), ("self", 2)} <= carried("aten.cumsum")
    assert carried("aten.randperm") == set()
