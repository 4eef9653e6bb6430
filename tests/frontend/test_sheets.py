"""The data sheet that a card is priced by, from what its driver tells."""

import pytest
from lowtide.frontend.roofline import DEVICES, sheet_of

GIB = 1 << 30


@pytest.mark.parametrize(("title", "memory", "capability", "expected"), [
    ("NVIDIA A100-SXM4-80GB", 80 * GIB, (8, 0), "a100"), ("NVIDIA A100-SXM4-40GB", 40 * GIB, (8, 0), "a100_40gb"),
    ("NVIDIA A100 80GB PCIe", 0, None, "a100"), ("NVIDIA A10G", 23 * GIB, (8, 6), "a10"),
    ("NVIDIA L40S", 45 * GIB, (8, 9), "l40s"), ("NVIDIA L4", 23 * GIB, (8, 9), "l4"), ("NVIDIA L40", 45 * GIB, (8, 9), "rtx4090"),
    ("NVIDIA H100 80GB HBM3", 80 * GIB, (9, 0), "h100"), ("NVIDIA GH200 480GB", 96 * GIB, (9, 0), "h100"),
    ("NVIDIA H200", 141 * GIB, (9, 0), "h200"), ("Tesla V100-SXM2-32GB", 32 * GIB, (7, 0), "v100"),
    ("Tesla P100-PCIE-16GB", 16 * GIB, (6, 0), "p100"), ("Quadro RTX 8000", 48 * GIB, (7, 5), "rtx8000"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", 16 * GIB, (8, 9), "rtx4090"), ("NVIDIA GeForce RTX 3090", 24 * GIB, (8, 6), "rtx3090"),
    ("NVIDIA GeForce RTX 5090", 32 * GIB, (12, 0), "rtx4090"), ("NVIDIA GeForce RTX 3060", 12 * GIB, (8, 6), "rtx3090"),
    ("NVIDIA RTX A1000", 8 * GIB, (8, 6), "rtx3090"), ("Tesla T4", 16 * GIB, (7, 5), "rtx8000"), ("NVIDIA B200", 180 * GIB, (10, 0), "h100"),
    ("NVIDIA GeForce GTX 1080", 8 * GIB, (6, 1), "p100"), ("a card of next year", 0, None, "a100")])
def test_a_card_is_known_by_its_name_or_else_by_what_it_can_do(title, memory, capability, expected):
    assert sheet_of(title, memory, capability) == expected


@pytest.mark.parametrize("name", [name for name in DEVICES if name != "cpu"])
def test_every_sheet_is_found_by_its_own_title(name):
    assert sheet_of(DEVICES[name].title, DEVICES[name].memory) == name
