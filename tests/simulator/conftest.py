"""Oclgrind with the plugin that counts memory traffic, or a reason to leave these tests out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clfuse.tools.bench import oclgrind


@pytest.fixture(scope="session")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for runs under Oclgrind. What is missing fails in CI and skips elsewhere."""
    folder = tmp_path_factory.mktemp("oclgrind")
    try:
        oclgrind.plugin(folder)
    except oclgrind.SimulatorError as error:
        if os.environ.get("CI") or os.environ.get("CLFUSE_TEST_DEVICE") == "required":
            pytest.fail(f"Oclgrind is required here: {error}", pytrace=False)
        pytest.skip(str(error))
    return folder
