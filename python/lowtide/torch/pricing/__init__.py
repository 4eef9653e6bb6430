"""The cost of kernels on this machine, measured or estimated, and whether their parts are bit-identical there."""
