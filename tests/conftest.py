"""What every test gets: the project's folder on the path, and a guard that the real temp/ stays untouched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
# A temporary root with stand-in agents, and a check that none is left running; a web site on the loopback.
pytest_plugins = ["lab", "website"]


def _temp_listing() -> set[str]:
    return {p.name for p in (PROJECT / "temp").iterdir()}


@pytest.fixture(autouse=True, scope="session")
def real_temp_untouched() -> Iterator[None]:
    """No test may leave a run folder in the project's own temp/."""
    before = _temp_listing()
    yield
    new = _temp_listing() - before
    assert not new, f"a test wrote to the project's temp/: {sorted(new)}"
