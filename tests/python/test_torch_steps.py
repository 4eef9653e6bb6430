"""The steps of a plan on their way to code."""

import pytest

pytest.importorskip("torch")

from lowtide.torch.errors import CaptureError
from lowtide.torch.steps import settle


@pytest.mark.parametrize("kind", ["offload", "prefetch", "compute_in_place"])
def test_steps_that_code_cannot_take_are_refused(kind):
    """They were dropped in silence once, and the plan that ran was another."""
    with pytest.raises(CaptureError, match=f"step 1 of the plan is {kind} 0: PyTorch runs plans that recompute"):
        settle(None, [("compute", 0), (kind, 0), ("free", 0)])
