"""What users call: optimize, step, explain, capture, and the backend of torch.compile."""
