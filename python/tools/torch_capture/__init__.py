"""From a PyTorch training step to a Lowtide graph: trace (fake_step), lower (lowering), price (roofline)."""

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ImportError("capturing needs PyTorch: pip install torch==2.13.0")
