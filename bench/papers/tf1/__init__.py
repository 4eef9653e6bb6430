"""The networks that Kumar et al. (NeurIPS 2019) train, as graphs of TensorFlow 1. `ffn(layers)`, `resnet(depth)` and
`transformer(size)` return a `Graph`; graph.py says how it is made."""
from .feed_forward import ffn
from .resnet import BLOCKS, resnet
from .transformer import transformer

__all__ = ["BLOCKS", "ffn", "resnet", "transformer"]
