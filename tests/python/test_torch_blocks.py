"""Steps on a GPU, shown on fake tensors where no GPU is: bytes in blocks of 512, and code of plans that stays on the device."""

import pytest

torch = pytest.importorskip("torch")

from lowtide.frontend.planning.as_code import as_code
from lowtide.frontend.planning.constraints import Constraints
from lowtide.torch.api.explain import _in_blocks
from lowtide.torch.device.meter import storages_held
from lowtide.torch.emission.emit import emit
from lowtide.torch.pricing.costs import pricing
from lowtide.torch.program.lowering import lower
from lowtide.torch.program.lowerings.random_draws import read_state
from lowtide.torch.runtime import transfers
from lowtide.torch.tensors.storages import allocated, bytes_of
from lowtide.torch.tracing.fake_step import trace_step
from lowtide.torch.transforms.plannable import PlannableProgram
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_zoo import ZOO

import lowtide


@pytest.mark.parametrize("size, blocks", [(0, 0), (1, 512), (511, 512), (512, 512), (513, 1024), (1 << 20, 1 << 20)])
def test_a_gpu_counts_whole_blocks_and_a_cpu_bytes(size, blocks):
    assert allocated(size, torch.device("cuda", 1)) == blocks
    assert allocated(size, torch.device("cpu")) == size
    with FakeTensorMode(), torch.no_grad():
        assert bytes_of(torch.empty(size, dtype=torch.uint8, device="cuda")) == blocks
    held = torch.empty(size, dtype=torch.uint8)
    assert bytes_of(held) == sum(storages_held(held).values()) == size


class _OnGpu(fx.Interpreter):
    """Gives the nodes of a graph, traced on the CPU, the values that they have on a GPU.  (Autograd on fake CUDA
    tensors ends the process of a CPU build; plain operators do not.)"""

    def run_node(self, node):
        kwargs = dict(node.kwargs)
        if "device" in kwargs:
            node.kwargs = kwargs | {"device": torch.device("cuda")}
        result = super().run_node(node)
        if node.op != "output":
            node.meta["val"] = result
        return result


def joint_on_gpu(model, x):
    joint = trace_step(lambda: (model, (x,), lambda m, x: m(x).square().mean()), "f32")
    values = [n.meta["val"] for n in joint.graph.find_nodes(op="placeholder")]
    mode = values[0].fake_mode
    with mode, torch.no_grad():
        _OnGpu(joint).run(*(torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device="cuda") for v in values))
    return joint


def test_a_step_on_a_gpu_is_planned_in_blocks():
    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(7, 33), nn.GELU(), nn.Linear(33, 5), nn.LayerNorm(5), nn.Linear(5, 1))

    x = torch.randn(11, 7)
    price = pricing("a100", torch.device("cpu"), False)
    here = trace_step(lambda: (model(), (x,), lambda m, x: m(x).square().mean()), "f32")
    plain = lower(here, 1, price, "cpu")
    mine = lower(joint_on_gpu(model(), x), 1, price, "gpu")
    bytes_here = [t.bytes for t in plain.graph.tensors]
    assert [t.bytes for t in mine.graph.tensors] == [-(-b // 512) * 512 for b in bytes_here]
    assert max(bytes_here) > 512 and any(b % 512 for b in bytes_here)
    assert _in_blocks(plain).graph.to_dict()["tensors"] == mine.graph.to_dict()["tensors"]


def of_the_zoo(name):
    """The program of a model of the zoo with the values that it has on a GPU, priced for one."""
    module, inputs = ZOO[name]()
    joint = trace_step(lambda: (module, inputs, None), "f32")
    values = [n.meta["val"] for n in joint.graph.find_nodes(op="placeholder")]
    with values[0].fake_mode, torch.no_grad():
        _OnGpu(joint).run(*(torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device="cuda") for v in values))
    return PlannableProgram.of(lower(joint, 1, pricing("h100", torch.device("cpu"), False), name))


@pytest.mark.parametrize("name", ZOO)
def test_code_of_a_plan_on_a_gpu_keeps_what_it_computes_there(name):
    """... and nothing of it is read on the host: copies go to the host and back, operators stay on the device."""
    program = of_the_zoo(name)
    plan = lowtide.plan(program.graph, "act:70%", work=20_000, techniques=["recompute", "in_place", "offload"], link="50GB/s,10us").plan
    if plan is None:
        plan = lowtide.own_plan(program.graph)
    made = as_code(program, Constraints(), plan, plan.machine)
    on_host = 0
    for half in emit(program, made.schedule.computes, made.schedule.transfers):
        for node in half.graph.find_nodes(op="call_function", target=transfers.fetch):
            assert node.args[5].type == "cuda"
        for node in half.graph.nodes:
            value, copied = node.meta.get("val"), node.target in (transfers.landed, transfers.gone)
            if node.target is read_state:  # of a generator: a few numbers that the host has
                continue
            assert node.target is not torch.ops.aten._local_scalar_dense.default
            if not isinstance(value, torch.Tensor) or node.op == "output":
                continue
            assert copied or value.device.type == "cuda" or node.op == "placeholder", node.format_node()
            on_host += copied
    assert on_host == len(made.schedule.copied)
