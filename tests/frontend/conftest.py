"""What every suite here leaves out: what is kept on disk, and what searches of other tests have found."""

import pytest
from lowtide.frontend.planning import report, search


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    monkeypatch.setattr(search, "_smallest", {})
    monkeypatch.setattr(report, "_reports", [])
