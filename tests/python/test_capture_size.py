"""lowtide.torch.capture: a model larger than any machine, and the examples."""

import gzip
import os
import resource
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from lowtide.torch import capture
from lowtide.torch.__main__ import main
from lowtide.torch.api.example_models import GPT2, ResNet50, UNet, ViT
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
SCALE = int(os.environ.get("LOWTIDE_TEST_SCALE", "1"))


class Block(nn.Module):
    """A block of a language model of 70 billion parameters in 80 of them: 64 heads over 8 keys, gated."""

    def __init__(self, width=8192, keys=1024, hidden=28672):
        super().__init__()
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, keys, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (-1, 128)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(-2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@pytest.mark.parametrize(("blocks", "parameters"), [
    (8, 8_946_589_696),
    pytest.param(80, 70_553_706_496, marks=pytest.mark.skipif(SCALE < 10, reason="LOWTIDE_TEST_SCALE is below 10"))])
def test_a_model_of_seventy_billion_parameters_takes_no_memory(blocks, parameters):
    """A slice of it, or all: 14 seconds and 200 MB for 565 GB of training."""
    def build():
        model = nn.Sequential(nn.Embedding(128256, 8192), *(Block() for _ in range(blocks)), nn.RMSNorm(8192),
                              nn.Linear(8192, 128256, bias=False))
        tokens = torch.zeros(1, 4096, dtype=torch.long)
        return model, (tokens, tokens), lambda m, x, y: F.cross_entropy(m(x).flatten(0, 1), y.flatten())

    before = peak_memory()
    graph = capture(build, dtype="bf16", optimizer="adamw")
    assert sum(t.bytes for t in graph.tensors if t.role == "parameter") == 2 * parameters
    assert graph.resident_bytes == 2 * 2 * parameters and graph.own_peak > 8 * parameters
    assert sum(t.role == "gradient" for t in graph.tensors) == 9 * blocks + 3
    assert peak_memory() - before < 1e9


def peak_memory():
    """Bytes of this process at most so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize(("model", "parameters"), [
    (ResNet50, 25_557_032), (GPT2, 124_439_808), (ViT, 86_567_656), (UNet, 31_037_698)])
def test_examples_have_the_published_number_of_parameters(model, parameters):
    with torch.device("meta"):
        assert sum(p.numel() for p in model().parameters()) == parameters


def test_resnet50_is_captured_as_committed(tmp_path):
    out = tmp_path / "resnet50.graph.json"
    assert main(["resnet50", "--batch", "128", "--device", "a100", "-o", str(out)]) == 0
    committed = gzip.decompress((ROOT / "examples" / "resnet50-train.graph.json.gz").read_bytes())
    assert out.read_bytes() == committed
