"""Properties of tensors, storages and operators that need neither tracing nor prices."""
