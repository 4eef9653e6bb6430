"""`capture` with a mesh: what one of several ranks holds and runs, as real ranks hold it."""


import functools

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from lowtide.torch import CaptureError, Shard, capture
from lowtide.torch.__main__ import main
from rank_support import ranks
from torch import nn

import lowtide

WIDTH, HEADS, KEYS, HIDDEN, VOCABULARY, LENGTH = 32, 4, 2, 64, 48, 16
TENSOR = {"tokens": "row", "layers.*.*.w[qkv13]": "column", "layers.*.*.w[o2]": "row", "head": "gather"}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = WIDTH // HEADS
        self.wq, self.wo = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.wk, self.wv = (nn.Linear(WIDTH, KEYS * self.size, bias=False) for _ in range(2))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for part in (self.wq, self.wk, self.wv))
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
        return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(WIDTH, HIDDEN) for _ in range(2))
        self.w2 = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.gated = Attention(), Gated()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.gated(self.norm2(x))


class Model(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, x):
        x = self.tokens(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def inputs(batch=2):
    x = torch.arange(batch * LENGTH).view(batch, LENGTH) % VOCABULARY
    return x, x.flip(1)


def build(layers=3):
    return Model(layers), inputs(), loss


def by_role(graph, role):
    return {t.name: t.bytes for t in graph.tensors if t.role == role}


def saved_bytes(graph):
    """Bytes of the floats that forward ops make and backward ops read."""
    phase = [op.phase for op in graph.ops]
    return sum(t.bytes for t in graph.tensors if t.producer is not None and phase[t.producer] == "forward" and t.dtype == "f32"
               and any(phase[op] == "backward" for op in t.consumers))


def local(t):
    t = t.to_local() if hasattr(t, "to_local") else t
    return t.wait() if hasattr(t, "wait") else t


def held(model):
    return {name: local(p).numel() * p.element_size() for name, p in model.named_parameters()}


def tensor_parallel_rank(rank, sequence):
    """Bytes of the local parameters by name, and of the floats that autograd saves of a step beside them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor import Shard as Split
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    model, between = Model(), Split(1) if sequence else Replicate()
    gathered = PrepareModuleInput(input_layouts=(between,), desired_input_layouts=(Replicate(),))
    plan = {"tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
            "head": ColwiseParallel(input_layouts=between, output_layouts=Replicate()),
            "layers.*.attention": gathered, "layers.*.gated": gathered}
    plan |= {f"layers.*.{name}": ColwiseParallel() for name in ("attention.wq", "attention.wk", "attention.wv", "gated.w1", "gated.w3")}
    plan |= {f"layers.*.{name}": RowwiseParallel(output_layouts=between) for name in ("attention.wo", "gated.w2")}
    if sequence:
        plan |= {name: SequenceParallel() for name in ("norm", "layers.*.norm1", "layers.*.norm2")}
    parallelize_module(model, init_device_mesh("cpu", (2,)), plan)
    known = {local(p).untyped_storage().data_ptr() for p in model.parameters()}
    saved = {}

    def pack(t):
        own = local(t)
        if own.dtype == torch.float32 and own.untyped_storage().data_ptr() not in known:
            saved[own.untyped_storage().data_ptr()] = own
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss(model, *inputs())
    return held(model), sum(t.untyped_storage().nbytes() for t in saved.values())


def fsdp_rank(rank):
    """Bytes of the local parameters, and of their gradients after a step, by name."""
    from torch.distributed.fsdp import fully_shard

    model = Model()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    loss(model, *inputs()).backward()
    return held(model), {f"{name}.grad": local(p.grad).numel() * 4 for name, p in model.named_parameters()}


def test_ranks_hold_what_real_ones_hold():
    with ranks(2) as call:
        for sequence in (False, True):
            graph = capture(build, mesh=(1, 2), shard=Shard(tensor=TENSOR, sequence=sequence))
            for parameters, saved in call(tensor_parallel_rank, sequence):
                assert by_role(graph, "parameter") == parameters
                assert saved_bytes(graph) == saved
        graph = capture(build, mesh=(2, 1))
        for parameters, gradients in call(fsdp_rank):
            assert by_role(graph, "parameter") == parameters and by_role(graph, "gradient") == gradients


@functools.cache
def step(mesh=None, **shard):
    return capture(build, mesh=mesh, shard=Shard(**shard) if shard else None, costs="h100", optimizer="adamw")


def workspaces(graph, alone):
    """What the mesh adds to each op's workspace, by its module's first two names and phase."""
    found = {}
    for op, same in zip(graph.ops, alone.ops):
        assert op.name == same.name and op.phase == same.phase
        found.setdefault((".".join((op.origin or "").split(".")[:2]), op.phase), set()).add(op.workspace - same.workspace)
    return found


def test_fsdp_counts_what_stands_when():
    alone, graph = step(), step((4, 1))
    parameters = by_role(alone, "parameter")
    block = sum(size for name, size in parameters.items() if name.startswith("layers.0."))
    root = sum(parameters.values()) - 3 * block
    held = sum(by_role(graph, "parameter").values())
    assert held == sum(parameters.values()) / 4 == sum(by_role(graph, "gradient").values())
    assert graph.resident_bytes == 2 * held + root  # AdamW's state, and the root's parameters
    found = workspaces(graph, alone)
    assert found["layers.1", "forward"] == {2 * block}  # its own, and the next one's
    assert found["layers.1", "backward"] == {2 * block + 2 * block}  # and gradients, its own and those being reduced
    assert found["layers.2", "forward"] == found["layers.1", "forward"]  # after it nothing is gathered, but it was copied itself
    kept = workspaces(step((4, 1), reshard=False), alone)
    assert kept["layers.0", "forward"] == {2 * block} and kept["layers.2", "forward"] == {4 * block}
    assert kept["layers.2", "backward"] == {3 * block + block + max(block, root)}
    assert step((4, 1), units="layers.[01]").resident_bytes == 2 * held + root + block


def test_master_numbers_take_four_bytes():
    graph = capture(build, mesh=(4, 1), shard=Shard(master=True), dtype="bf16", optimizer="adamw")
    whole = sum(by_role(capture(build, dtype="bf16"), "parameter").values())
    assert sum(by_role(graph, "parameter").values()) == 2 * whole / 4 == sum(by_role(graph, "gradient").values())
    assert graph.resident_bytes > 2 * 2 * whole / 4


def test_ddp_holds_everything_and_buckets():
    alone, graph = step(), step((4, 1), data="ddp")
    gradients = sum(by_role(alone, "gradient").values())
    assert graph.own_peak == alone.own_peak + gradients and by_role(graph, "gradient") == by_role(alone, "gradient")


def wait(graph):
    return sum(op.time for op in graph.ops if op.kind == "lowtide.wait_for_ranks")


def test_slow_links_are_waited_for():
    fast, slow = (wait(step((4, 1), link=link)) for link in ("900GB/s", "1MB/s"))
    bytes_ = sum(by_role(step(), "parameter").values())
    assert 0 <= fast < slow and slow > 3 * bytes_ * 3 / 4 * 1000 * 0.6  # two gathers and a reduction, without the root's gathers
    assert wait(step((1, 1))) == 0 and step((1, 1)).hash == step().hash
    graph = step((4, 1), link="1MB/s")
    assert lowtide.plan(graph, "100%", work=1000).duration >= slow  # once, whatever else is repeated


def test_a_part_of_the_batch_and_of_the_modules():
    graph = capture(build, mesh=(2, 2), shard=Shard(tensor=TENSOR, sequence=True), costs="h100")
    kinds = [op.kind for op in graph.ops]
    assert kinds.count("_c10d_functional.all_gather_into_tensor") == 3 * 2 + 2 + 3 * 2 + 1
    assert kinds.count("_c10d_functional.reduce_scatter_tensor") == 3 * 2 + 1 + 3 * 2 + 1
    assert by_role(graph, "parameter")["layers.0.attention.wq.weight"] == WIDTH * WIDTH * 4 / 4
    assert {op.origin.rpartition(".")[2] for op in graph.ops if "all_gather" in op.kind} == {"wq", "w1", "wo", "w2", "head", "tokens"}
    assert all("test_capture_mesh.py" in op.attributes for op in graph.ops if op.kind.startswith("_c10d"))
    plan = lowtide.plan(graph, "act:70%", work=20_000)
    assert plan.status in ("optimal", "feasible")


def test_repeated_layers_are_those_of_the_whole_model():
    for mesh, shard in (((1, 1), {}), ((4, 2), {"tensor": TENSOR, "sequence": True, "units": "layers.*"})):
        traced, whole = (capture(functools.partial(build, 5), mesh=mesh, shard=Shard(repeat=repeat, **shard), costs="h100",
                                 optimizer="adamw") for repeat in ("layers", None))
        assert traced.hash == whole.hash
        assert [(op.origin, op.kind) for op in traced.ops] == [(op.origin, op.kind) for op in whole.ops]
        assert {t.name for t in traced.tensors if t.role != "activation"} == {t.name for t in whole.tensors if t.role != "activation"}


def test_layers_that_are_not_equal_are_not_repeated():
    def other(change):
        def built():
            model = Model(6)
            change(model)
            return model, inputs(), loss

        return built

    def widen(model):
        model.layers[4].gated.w1 = nn.Linear(WIDTH, 2 * HIDDEN)

    def scale(model):
        model.layers[2].norm1.forward = lambda x: F.layer_norm(x, (WIDTH,)) * 2

    def look_back(model):
        first = model.layers[0]
        for layer in model.layers[3:]:
            layer.gated.w2.weight = first.gated.w2.weight

    for change, words in ((widen, "layers.0 and layers.4"), (scale, "not equal"), (look_back, "layers.0 and layers.3 share gated.w2.weight")):
        with pytest.raises(CaptureError, match=words):
            capture(other(change), mesh=(1, 1), shard=Shard(repeat="layers"))
    with pytest.raises(CaptureError, match="no ModuleList"):
        capture(build, mesh=(1, 1), shard=Shard(repeat="blocks"))
    assert capture(build, mesh=(1, 1), shard=Shard(repeat="layers")).hash == capture(build, mesh=(1, 1)).hash  # of three layers


def test_collectives_are_priced_for_the_ranks_of_the_mesh():
    def times(tp):
        graph = capture(build, mesh=(1, tp), shard=Shard(tensor={"layers.*.gated.w1": "column", "layers.*.gated.w3": "column",
                                                                 "layers.*.gated.w2": "row"}), costs="h100")
        return [op.time for op in graph.ops if op.kind == "_c10d_functional.all_reduce"]

    (two,), (eight,) = set(times(2)), set(times(8))
    latency = 20_000
    assert len(times(2)) == 6 and (eight - latency) == pytest.approx((two - latency) * 7 / 4, abs=3)


def test_tied_weights_stay_tied():
    def tied():
        model = Model()
        model.head.weight = model.tokens.weight
        return model, inputs(), loss

    graph = capture(tied, mesh=(1, 2), shard=Shard(tensor=TENSOR))
    assert "head.weight" not in by_role(graph, "parameter") and by_role(graph, "parameter")["tokens.weight"] == VOCABULARY * WIDTH * 2


def test_a_rule_may_be_a_function():
    def rule(path, module):
        return "column" if path.endswith((".w1", ".w3")) else "row" if path.endswith(".w2") else None

    graph = capture(build, mesh=(1, 2), shard=Shard(tensor=rule))
    assert by_role(graph, "parameter")["layers.1.gated.w1.weight"] == WIDTH * HIDDEN * 2


def test_a_module_is_not_changed():
    model = Model()
    before = {name: p.shape for name, p in model.named_parameters()}
    capture(model, inputs(), loss, mesh=(2, 2), shard=Shard(tensor=TENSOR))
    assert {name: p.shape for name, p in model.named_parameters()} == before and model.head(torch.ones(1, WIDTH)).shape == (1, VOCABULARY)


@pytest.mark.parametrize(("mesh", "shard", "words"), [
    ((2,), None, r"mesh must be \(dp, tp\)"), ((0, 1), None, "mesh must be"), (None, "fsdp", "give mesh"), ((2, 1), "fsdp2", "fsdp2"),
    ((1, 2), None, "needs the modules"), ((1, 2), Shard(tensor={"no.*": "row"}), "layers.0.attention.wq"),
    ((1, 3), Shard(tensor=TENSOR), "cannot be divided among 3"), ((1, 2), Shard(tensor={"layers.*.norm1": "column"}), "not of LayerNorm"),
    ((2, 1), Shard(units="blocks.*"), "blocks"), ((2, 1), Shard(link="fast"), "fast"),
    ((1, 2), Shard(tensor=lambda path, module: "rows"), "rows")])
def test_mistakes_are_named(mesh, shard, words):
    with pytest.raises((CaptureError, ValueError), match=words):
        capture(build, mesh=mesh, shard=shard, costs="h100")


def test_styles_and_optimizers_that_no_rank_has_are_refused():
    with pytest.raises(ValueError, match="layers.*column"):
        Shard(tensor={"layers.*": "colum"})
    with pytest.raises(ValueError, match="master"):
        Shard("ddp", master=True)
    with pytest.raises(ValueError, match="by name"):
        capture(build, mesh=(2, 1), update="sgd")


def test_a_table_of_meshes_and_batches(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "import sys\nfrom lowtide.torch import Shard\n"
        f"sys.path.insert(0, {str(__file__).rpartition('/')[0]!r})\n"
        "from test_capture_mesh import TENSOR, Model, inputs, loss\n"
        "SHARD = Shard(tensor=TENSOR, sequence=True)\n"
        "def build(batch):\n    return Model(), inputs(batch), loss\n")
    model = f"{tmp_path}/mine.py"
    ask = [f"{model}:build", "--mesh", "4x1,2x2", "--shard", f"{model}:SHARD", "--batch", "1,4", "--budget", "200KiB", "--work", "3000",
           "--device", "h100", "-o", str(tmp_path / "out")]
    assert main(ask) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["mesh", "batch"], ["4x1", "1"], ["4x1", "4"], ["2x2", "1"], ["2x2", "4"]]
    assert "fits" in lines[3] and "does not fit: needs" in lines[2]
    assert len(list((tmp_path / "out").glob("*.graph.json.gz"))) == 4
    assert main(ask) == 0 and capsys.readouterr().out.splitlines() == lines
    for wrong, words in ((["--mesh", "4"], "DPxTP"), (["--batch", "0"], "at least 1"), (["--batch", "1,2", "-o", "x"], "table"),
                         ([], "required"), (["--budget", "1GiB"], "--mesh")):
        with pytest.raises(SystemExit):
            main([f"{model}:build", *wrong])
        assert words in capsys.readouterr().err
    assert main([f"{model}:build", "--mesh", "2x2", "--shard", f"{model}:NONE", "-o", "x", "--batch", "1"]) == 2
    assert "has no value NONE" in capsys.readouterr().err
