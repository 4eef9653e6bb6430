"""What writes over an argument has the bits, the strides and no more memory than what makes a new tensor.

Every operator of lowerings/in_place.py, for every number type and layout, with numbers of all magnitudes; and which
operands are left alone.
"""

import functools
import itertools
import os
import random

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.device.meter import peak_rise
from lowtide.torch.pricing.costs import materialise
from lowtide.torch.program.in_place import is_laid_out_as, out_variant_of, overwritable
from lowtide.torch.program.lowering import lower
from lowtide.torch.tensors.operators import arguments_of, leaves
from lowtide.torch.tensors.storages import storage
from lowtide.torch.tracing.training_step import joint_graph
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_bits import COMPLEX, LAYOUTS, REAL, SIZES, WHOLE, numbers, same_bytes
from torch_run import fresh
from torch_zoo import ZOO

aten = torch.ops.aten
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is here"))]
TYPES = [*REAL, *COMPLEX, *WHOLE, torch.bool]
TRIES = min(20, int(os.environ.get("LOWTIDE_TEST_SCALE", "1"))) * 4
DENSE = ["rows", "channels last", "transposed", "permuted"]  # layouts that fill their storages


def operators(device="cpu"):
    """All operators that have a variant."""
    found = []
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if name.startswith("aten::"):
            base, _, overload = name.removeprefix("aten::").partition(".")
            target = getattr(getattr(aten, base, None), overload or "default", None)
            if target is not None and out_variant_of(target, device):
                found.append(target)
    return found


def is_pointwise(target):
    gradient = "_backward" in str(target) and "softmax" not in str(target)
    return gradient or torch.Tag.pointwise in target.tags and target is not aten.masked_fill.Scalar


def literals(kind):
    """Values of an argument that is no tensor, by its type in the schema."""
    return {"number": [0.3, 2], "Optional[number]": [0.3, 2], "float": [0.3], "Optional[float]": [None, 0.3],
            "int": [2], "bool": [False, True], "str": ["none", "tanh"], "Optional[str]": [None, "trunc", "floor"],
            "Optional[int]": [None]}[kind]


def calls(target, tensors):
    """Arguments of a pointwise operator: tensors(k, name) for its k-th tensor, and every choice of literals."""
    schema, k = target._schema.arguments, itertools.count()
    choices = [[tensors(next(k), a.name)] if "Tensor" in str(a.type) else literals(str(a.type)) for a in schema]
    for chosen in itertools.product(*choices):
        yield ([value for a, value in zip(schema, chosen, strict=True) if not a.kwarg_only],
               {a.name: value for a, value in zip(schema, chosen, strict=True) if a.kwarg_only})


def proved(target, args, kwargs):
    """The arguments over which the operator was seen to write the bits of the plain call, all that may be."""
    try:
        made = target(*args, **kwargs)
    except (RuntimeError, TypeError, NotImplementedError):
        return set()  # no such number type
    done = set()
    variant, names = out_variant_of(target, made.device.type), [a.name for a in target._schema.arguments]
    for name in variant.over:
        place = names.index(name)
        operand = args[place] if place < len(args) else kwargs[name]
        if not isinstance(operand, torch.Tensor) or not is_laid_out_as(operand, made):
            continue
        mine = [a.clone() if a is operand else a for a in args]
        others = [(a, a.clone().contiguous()) for a in args if isinstance(a, torch.Tensor) and a is not operand]
        got = variant.function(*mine, **variant.kwargs(mine[place], kwargs))
        words = f"{target} over {name}: {made.dtype} {list(made.shape)} {list(made.stride())} {kwargs}"
        assert got.data_ptr() == mine[place].data_ptr() and same_bytes(got, made), words
        assert all(same_bytes(a.contiguous(), b) for a, b in others), f"{words}: another operand has changed"
        done.add(name)
    return done


OTHERS = [None, *LAYOUTS, "a number"]  # what operands beside the first lie like; None: as that one


@pytest.mark.parametrize("device", DEVICES)
def test_pointwise_operators_write_over_any_operand(device):
    torch.manual_seed(0)
    dice = random.Random(0)
    missing = []
    for target in filter(is_pointwise, operators(device)):
        done = set()
        for dtype in TYPES:
            for _ in range(TRIES * (3 if dtype in REAL else 1)):
                size, layout, other = dice.choice(SIZES), dice.choice(DENSE), dice.choice(OTHERS)

                def tensors(k, name, size=size, layout=layout, other=other, dtype=dtype):
                    x = numbers(size, torch.bool if name in ("condition", "mask") else dtype, device)
                    if k and other == "a number":
                        return x.flatten()[-1] if x.numel() else x
                    return LAYOUTS[other if k and other and dice.random() < 0.7 else layout](x)

                done |= proved(target, *dice.choice(list(calls(target, tensors))))
        if done != set(out_variant_of(target, device).over):  # all alike, of every type and with all literals
            for dtype in TYPES:
                same = numbers(SIZES[0], dtype, device)
                def alike(k, name, same=same):
                    return same > 0 if name == "condition" else same.clone()

                for args, kwargs in calls(target, alike):
                    done |= proved(target, args, kwargs)
        missing += [f"{target} over {name}" for name in out_variant_of(target, device).over if name not in done]
    assert not missing


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("target", [aten.add.Tensor, aten.gelu_backward.default, aten.exp.default, aten.relu.default])
def test_operands_of_several_threads(target, device):
    torch.manual_seed(0)
    for dtype in REAL:
        for args, kwargs in calls(target, lambda k, name, dtype=dtype: numbers((2, 3, 64, 181), dtype, device)):
            assert proved(target, args, kwargs) == set(out_variant_of(target, device).over)


@pytest.mark.parametrize("device", DEVICES)
def test_operands_of_other_types(device):
    """The operand that has the type of the result may be overwritten, whatever it is added to."""
    torch.manual_seed(0)
    seen = set()
    for target in (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.pow.Tensor_Tensor,
                   aten.atan2.default, aten.maximum.default, aten.where.self):
        for a, b in itertools.permutations(TYPES, 2):
            for scalar in (False, True):
                size = SIZES[0]
                x, y = numbers(size, a, device), numbers(() if scalar else size, b, device)
                for args in ([x, y], [y, x]):
                    args = [numbers(size, torch.bool, device), *args] if target is aten.where.self else args
                    seen |= {(target, a, b, scalar) for _ in proved(target, args, {})}
    assert len(seen) > 500
    for alpha in (2, -1):
        x, y = numbers(SIZES[0], torch.float32, device), numbers(SIZES[0], torch.bfloat16, device)
        assert proved(aten.add.Tensor, [y, x], {"alpha": alpha}) == {"other"}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("target", [aten._softmax.default, aten._log_softmax.default])
def test_softmax_and_its_backward(target, device):
    torch.manual_seed(0)
    backward = getattr(aten, f"{target._schema.name.removeprefix('aten::')}_backward_data").default
    done = set()
    for size, layout in itertools.product([*SIZES, (2, 1, 5, 1027), (3, 500, 1, 2)], DENSE):
        for dtype, dim in itertools.product(REAL, range(4)):
            for x in (numbers(size, dtype, device), (3 * torch.randn(size)).to(dtype).to(device)):
                x = LAYOUTS[layout](x)
                done |= proved(target, [x, dim, False], {})
                y, g = target(x, dim, False), LAYOUTS[layout](torch.randn(size).to(dtype).to(device))
                done |= {f"backward {name}" for name in proved(backward, [g, y, dim, dtype], {})}
                y = LAYOUTS[layout](y)
                done |= {f"backward {name}" for name in proved(backward, [g, y, dim, dtype], {})}
    assert done == {"self", "backward grad_output", "backward output"}
    for size in ((), (1,), (1001,), (33, 31)):
        x = numbers(size, torch.float32, device)
        assert proved(target, [x, -1, False], {}) == {"self"}


@pytest.mark.parametrize("device", DEVICES)
def test_operators_that_change_a_part_of_their_argument(device):
    torch.manual_seed(0)
    done = set()
    for size, layout, dtype in itertools.product([s for s in SIZES if 0 not in s], DENSE, TYPES):
        x = LAYOUTS[layout](numbers(size, dtype, device))
        mask = torch.rand(size, device=device) < 0.4
        rows = torch.randint(size[2], (size[2],), device=device)
        some = torch.randint(size[0], (4,), device=device)
        index = torch.randint(size[2], size, device=device)
        if device != "cpu":  # where equal indices are written to in any order
            rows, some = torch.randperm(size[2], device=device), torch.randperm(size[0], device=device)[:4]
            index = torch.rand(size, device=device).argsort(2)
        source = numbers(size, dtype, device)
        one = numbers((), dtype, device)
        for target, args in (
            (aten.masked_fill.Scalar, [x, mask, 1]), (aten.masked_fill.Scalar, [x, mask[:1], 0]),
            (aten.masked_fill.Tensor, [x, mask, one]), (aten.tril.default, [x, 0]), (aten.tril.default, [x, -1]),
            (aten.triu.default, [x, 1]), (aten.index_put.default, [x, [some], source[:1]]),
            (aten.index_put.default, [x, [None, None, rows], source, False]),
            (aten.index_put.default, [x, [mask], one]), (aten.index_put.default, [x, [some], source[:1], True]),
            (aten.index_add.default, [x, 2, rows, source]), (aten.index_copy.default, [x, 2, rows.sort()[0], source]),
            (aten.index_fill.int_Scalar, [x, 2, rows, 1]), (aten.scatter.src, [x, 2, index, source]),
            (aten.scatter.value, [x, 2, index, 1]), (aten.scatter_add.default, [x, 2, index, source]),
            (aten.masked_scatter.default, [x, mask, source]),
        ):
            done |= {target for _ in proved(target, args, {})}
    listed = {t for t in operators(device) if not is_pointwise(t) and "softmax" not in str(t)}
    assert done | {aten.hardswish.default} == listed
    for dtype in REAL:
        assert proved(aten.hardswish.default, [numbers((7, 9), dtype, device)], {}) == {"self"}


def test_the_backward_of_dropout():
    torch.manual_seed(0)
    for size, layout, dtype in itertools.product(SIZES[:2], DENSE, REAL):
        g = LAYOUTS[layout](numbers(size, dtype))
        for scale in (1 / 0.7, 10 / 9, 2.0, 0.0):
            mask = LAYOUTS[layout](torch.rand(size) < 0.7)
            assert proved(aten.native_dropout_backward.default, [g, mask, scale], {}) == {"grad_output"}
            proved(aten.native_dropout_backward.default, [g, torch.rand(size) < 0.7, scale], {})
            p = 1 - 1 / scale if scale else 1.0
            assert proved(torch.ops.lowtide.dropout_apply.default, [g, mask, p], {}) == {"input"}


def test_no_twin_takes_memory_of_its_own():
    """But for what the plain call takes beside its result."""
    torch.manual_seed(0)
    for target in filter(is_pointwise, operators()):
        def tensors(k, name, target=target):
            whole = any(word in str(target) for word in ("bitwise", "gcd", "lcm", "shift"))
            kind = torch.bool if name in ("condition", "mask") else torch.int64 if whole else torch.float32
            return numbers((64, 1024), kind)

        args, kwargs = next(iter(calls(target, tensors)))
        try:
            made = target(*args, **kwargs)
        except RuntimeError:
            continue
        plain = peak_rise(functools.partial(target, *args, **kwargs))
        names = [a.name for a in target._schema.arguments]
        variant = out_variant_of(target, "cpu")
        for name in variant.over:
            operand = args[names.index(name)]
            if not isinstance(operand, torch.Tensor) or not is_laid_out_as(operand, made):
                continue
            named = variant.kwargs(operand, kwargs)
            rise = peak_rise(functools.partial(variant.function, *args, **named))
            assert rise <= plain - made.untyped_storage().nbytes() + 64, f"{target} over {name}"


def _asked(function, *shapes):
    """What the one node of a traced function may overwrite."""
    mode = FakeTensorMode()
    with mode:
        inputs = [torch.empty_strided(*shape) for shape in shapes]
    graph = fx.experimental.proxy_tensor.make_fx(function)(*inputs).graph
    node = [n for n in graph.nodes if n.op == "call_function"][-1]
    return set(overwritable(node, arguments_of(node)))


def test_operands_that_are_left_alone():
    rows, columns = ((4, 6), (6, 1)), ((4, 6), (1, 4))
    assert _asked(torch.add, rows, rows) == {"self", "other"}
    assert _asked(torch.add, rows, columns) == {"self"}  # the result lies like the first
    assert _asked(torch.add, rows, ((6,), (1,))) == {"self"}  # is broadcast
    assert _asked(torch.add, ((4, 6), (0, 1)), rows) == {"other"}
    assert _asked(lambda x: torch.add(x, x), rows) == set()  # twice the same
    assert _asked(lambda x: torch.add(x, x.t()), ((4, 4), (4, 1))) == set()  # the same storage
    assert _asked(lambda x: torch.relu(x[:, :3]), rows) == set()  # a part
    assert _asked(lambda x: torch.relu(x[1:]), rows) == set()
    assert _asked(lambda x: torch.relu(x.view(24)), rows) == {"self"}  # all of it
    assert _asked(lambda x: torch.softmax(x.t(), 0), rows) == set()  # the result is in rows
    assert _asked(lambda x: torch.add(x, 1.5), rows) == {"self"}
    assert _asked(lambda x: x > 0, rows) == set()
    assert _asked(lambda x: torch.add(x.to(torch.int32), 1.5), rows) == set()
    assert _asked(torch.relu, ((0, 6), (6, 1))) == set()
    assert _asked(lambda x: x.clone(), rows) == set()
    assert _asked(lambda x: torch.mm(x, x.t()), ((4, 4), (4, 1))) == set()


class _Kernels:
    """In the place of their prices: all kernels of a step."""

    real = True

    def prepare(self, kernels):
        self.all = kernels

    def __call__(self, kernel):
        return 1, 0, []


# in long runs all; test_torch_matrix.py trains each, and what is overwritten too early shows in its bits
@pytest.mark.parametrize("name", ZOO if int(os.environ.get("LOWTIDE_TEST_SCALE", "1")) >= 10 else list(ZOO)[::2])
def test_kernels_make_new_storages_where_their_fakes_say_so(name):
    """Or a plan would write over a tensor that another one shows."""
    kernels = _Kernels()

    def backend(module, inputs):
        joint, count = joint_graph(module, inputs)
        lower(joint, count, kernels, "step")
        return module

    torch._dynamo.reset()
    module, inputs = fresh(ZOO[name])
    torch.compile(module, backend=backend)(*inputs)
    for kernel in kernels.all:
        given = {storage(t) for t in leaves((kernel.args, kernel.kwargs))}
        args, kwargs = materialise((kernel.args, kernel.kwargs), torch.device("cpu"))
        made, real = leaves(kernel.target(*args, **kwargs)), {storage(t) for t in leaves((args, kwargs))}
        for fake, t in zip(leaves(kernel.results), made, strict=True):
            assert storage(fake) in given or storage(t) not in real, f"{kernel.target}"
