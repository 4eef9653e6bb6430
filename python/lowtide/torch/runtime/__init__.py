"""What the code of a planned step calls while it runs."""
