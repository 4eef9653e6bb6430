"""The functions of lowtide.jax: `capture`, `explain` and `optimize`."""
