"""From a PyTorch training step to a Lowtide graph: trace (fake_step), lower (lowering), price (roofline)."""
