"""What kernels cost on this machine, measured or estimated, and whether their parts keep bits there."""
