"""Copies to the host and back: host.py is the memory there, transfers.py what code calls, link.py what copies take."""
