"""A step of the caller -> flat equations, without repeated ones and without those that nothing needs."""
