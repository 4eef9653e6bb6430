"""The public functions: optimize, step, explain, capture, and the backend of torch.compile."""
