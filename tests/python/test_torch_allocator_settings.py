"""Settings of the allocator against PyTorch's own parser."""

import random

import pytest
import torch

import lowtide

parser = getattr(torch._C, "_accelerator_setAllocatorSettings", None)
DEFAULTS = "large_segment_size_mb:20"  # which PyTorch keeps from string to string
KEYS = ["expandable_segments", "max_split_size_mb", "max_non_split_rounding_mb", "garbage_collection_threshold",
        "roundup_power2_divisions", "large_segment_size_mb", "pinned_use_background_threads"]
VALUES = ["True", "False", "true", "20", "64", "19", "0", "-1", "3", "4", "1", "0.5", "1.5", "x", "", "[256:1,512:2,>:4]", "[>:8]",
          "[]", "[256:3]", "[100:2]", "[256:1", "[256]", "128 "]


def refused_by(function, text):
    try:
        function(text)
    except (ValueError, RuntimeError, IndexError, lowtide.Error):
        return True
    return False


@pytest.mark.skipif(parser is None, reason="before PyTorch had settings for all accelerators")
def test_what_pytorch_refuses_is_refused():
    rng = random.Random(5)
    refused = 0
    try:
        for _ in range(3000):
            pairs = [rng.choice(KEYS) + rng.choice([":"] * 8 + ["", ","]) + rng.choice(VALUES) for _ in range(rng.choice([1, 1, 2, 3]))]
            text = rng.choice([","] * 9 + [" "]).join(pairs) + rng.choice(["", "", ","])
            parser(DEFAULTS)
            if refused_by(parser, text):
                refused += 1
                assert refused_by(lambda s: lowtide.replay_allocations([], s), text), text
    finally:
        parser(DEFAULTS)
    assert 500 < refused < 2900


@pytest.mark.skipif(parser is None, reason="before PyTorch had settings for all accelerators")
@pytest.mark.parametrize("text", [
    "", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4", "max_split_size_mb:20,",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "garbage_collection_threshold:0.8,expandable_segments:False",
    "large_segment_size_mb:12,max_split_size_mb:12", "max_split_size_mb: 64 , max_non_split_rounding_mb:30",
    "roundup_power2_divisions:[]", "pinned_use_background_threads:True",
])
def test_what_both_take(text):
    try:
        parser(DEFAULTS)
        assert not refused_by(parser, text)
    finally:
        parser(DEFAULTS)
    lowtide.replay_allocations([], text)
