"""What the tests of lowtide.torch.capture share: small models, and captured graphs that keep the format's rules."""

import pytest

torch = pytest.importorskip("torch")

from graph_rules import check, with_defaults
from lowtide.torch import capture
from torch import nn


def square(model, x):
    return model(x).square().mean()


def graph_of(build, **options):
    """The dict of a captured graph, checked."""
    graph = with_defaults(capture(build, name="test", **options).to_dict())
    check(graph)
    return graph


def captured(make, *shape, loss=square, **options):
    """The same of a training step of make() on float inputs of `shape`."""
    return graph_of(lambda: (make(), (torch.empty(*shape),), loss), **options)


def attributes(op):
    return {key: value for key, value in op["attributes"].items() if key != "source"}


class Mlp(nn.Sequential):
    def __init__(self, dropout=0.5):
        super().__init__(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 16), nn.Dropout(dropout),
                         nn.Linear(16, 4))


class Cnn(nn.Module):
    def __init__(self, repeat=1):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.repeat = repeat

    def forward(self, x):
        x = self.conv(x)
        for _ in range(self.repeat):
            x = self.relu(self.bn(x))
        return x
