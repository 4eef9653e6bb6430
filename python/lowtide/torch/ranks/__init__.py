"""Training by several ranks."""
