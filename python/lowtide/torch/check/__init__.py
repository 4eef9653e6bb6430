"""Checks lowtide.torch on a GPU in some minutes: budgets, bit-identity and predicted times.

    python -m lowtide.torch.check --out results

A parent process (parent.py) runs workers (worker.py), which run the sections of table.py, the most important first; what a
section finds are results (section.py), and report.py says them to people.
"""
