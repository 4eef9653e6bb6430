"""lowtide.torch.capture: which module and which line of the source an op comes from."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from capture_support import captured, graph_of
from graph_rules import of_kind, with_defaults
from lowtide.torch.tracing.origins import module_path, source_line
from torch import nn

import lowtide


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        x = self.lin(x)  # inner
        return torch.tanh(x)  # tanh


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Inner(), Inner()])

    def forward(self, x):
        x = self.blocks[0](x)
        return 2 * x + self.blocks[1](x)  # sum


def marked(word):
    """As an op's source says it, the line of this file that ends with the comment `word`."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if line.endswith(f"  # {word}"))
    return f"{Path(__file__).name}:{number}"


def test_ops_say_which_module_and_which_line_they_come_from():
    def loss(model, x):
        return model(x).abs().sum()  # loss

    graph = captured(Outer, 4, 8, loss=loss)
    said = [(op["kind"].removeprefix("aten."), op["origin"], op["attributes"].get("source"))
            for op in graph["ops"] if op["kind"] != "lowtide.barrier"]
    inner, tanh, add, whole = map(marked, ("inner", "tanh", "sum", "loss"))
    assert said[:8] == [
        ("addmm", "blocks.0.lin", inner), ("tanh", "blocks.0", tanh), ("mul", None, add),
        ("addmm", "blocks.1.lin", inner), ("tanh", "blocks.1", tanh), ("add", None, add),
        ("abs", "loss", whole), ("sum", "loss", whole)]
    backward = set(said[8:])
    assert {("sgn", "loss", whole), ("mul", None, add), ("tanh_backward", "blocks.1", tanh),
            ("mm", "blocks.1.lin", inner), ("mm", "blocks.0.lin", inner)} <= backward
    assert [line for kind, _, line in said[8:] if line is None and kind != "add"] == []  # a sum of gradients


def test_calls_inside_pytorchs_layers_have_the_line_outside():
    def loss(model, x):
        return model(x).sum()  # layer

    make = lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
    graph = captured(make, 2, 8, 16, loss=loss)
    assert {op["attributes"].get("source") for op in graph["ops"]} - {None} == {marked("layer")}
    alone = graph_of(lambda: (nn.Sequential(make(), nn.Flatten(0), nn.Linear(256, 1)), (torch.empty(2, 8, 16),), None))
    assert not any("source" in op["attributes"] for op in alone["ops"])  # no line of the user's runs
    assert {op["attributes"]["source"] for op in of_kind(graph, "lowtide.random_state")} == {marked("layer")}


@pytest.mark.parametrize(("variable", "prefix"), [("self", ""), ("net", "net")])
def test_torch_compile_knows_modules_and_lines_too(monkeypatch, variable, prefix):
    module, programs = sys.modules["lowtide.torch.graphs.planning"], []
    lower = module.lower
    monkeypatch.setattr(module, "lower", lambda *given, **named: programs.append(lower(*given, **named)) or programs[-1])
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch.compiler.reset()

    def step(net, x):
        return net(x)

    model, x = Outer(), torch.ones(4, 8)
    options = {"budget": "100%", "costs": "cpu", "fallback": "error"}
    if variable == "self":
        torch.compile(model, backend=lowtide.torch.backend, options=options)(x)
    else:
        torch.compile(step, backend=lowtide.torch.backend, options=options)(model, x)
    ops = with_defaults(programs[0].graph.to_dict())["ops"]
    inner, tanh, add = map(marked, ("inner", "tanh", "sum"))
    root = prefix or None
    expected = [("addmm", "blocks.0.lin", inner), ("tanh", "blocks.0", tanh), ("mul", None, add),
                ("addmm", "blocks.1.lin", inner), ("tanh", "blocks.1", tanh), ("add", None, add)]
    expected = [(kind, ".".join(filter(None, (prefix, path))) or root, line) for kind, path, line in expected]
    said = [(op["kind"].removeprefix("aten."), op["origin"], op["attributes"].get("source")) for op in ops]
    assert said[:6] == expected
    assert expected[3][1:] in [words[1:] for words in said if words[0] == "mm"]


@pytest.mark.parametrize(("noted", "path"), [
    ("L['self']", ""), ("L['self'].h.3.mlp", "h.3.mlp"), ("L['self']._modules['h-3']", "h-3"),
    ("L['net'].h", "net.h"), ("G['NET']", "NET")])
def test_module_paths_that_torch_compile_has_noted(noted, path):
    node = torch.fx.Graph().placeholder("x")
    assert module_path(node) is None
    node.meta["nn_module_stack"] = {"1": ("L['other']", nn.Module), "2": (noted, nn.Module)}
    assert module_path(node) == path


def test_lines_that_torch_compile_has_noted():
    node = torch.fx.Graph().placeholder("x")
    assert source_line(node) is None
    inside = Path(nn.modules.linear.__file__)
    node.meta["stack_trace"] = ('  File "/home/me/models/net.py", line 12, in forward\n    y = self.f(x)\n'
                                '  File "/home/me/models/parts.py", line 7, in f\n    return self.lin(x)\n'
                                f'  File "{inside}", line 3, in forward\n    return F.linear(x)\n')
    assert source_line(node) == "parts.py:7"
