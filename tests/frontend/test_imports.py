"""What every front end shares needs none of their frameworks."""

import pkgutil
import subprocess
import sys

import lowtide.frontend


def test_no_framework_is_imported():
    names = [module.name for module in pkgutil.walk_packages(lowtide.frontend.__path__, "lowtide.frontend.")]
    assert len(names) > 15
    found = subprocess.run([sys.executable, "-c", f"import sys, {', '.join(names)}; print(*sys.modules)"], check=True, text=True,
                           capture_output=True).stdout.split()
    assert set(names) <= set(found) and not {"torch", "jax", "numpy", "lowtide.torch"} & set(found)
