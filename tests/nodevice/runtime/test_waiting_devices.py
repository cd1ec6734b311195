"""Whether a device that nobody has opened can only be a processor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clfuse.runtime.devices import selection
from clfuse.runtime.drivers import vendors


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    selection._is_processor.cache_clear()
    yield
    selection._is_processor.cache_clear()


@pytest.mark.parametrize(
    ("libraries", "spec", "waits"),
    [
        (["/usr/lib/libpocl.so.2"], "", True),
        (["libpocl.so.2", "/opt/x/libintelocl.so"], "", True),
        (["libpocl.so.2", "/opt/x/libintelocl.so"], "CPU", True),
        (["libpocl.so.2", "/opt/x/libintelocl.so"], " Intel ", True),
        (["libpocl.so.2"], "intel", False),
        (["libpocl.so.2"], "gpu", False),
        (["libpocl.so.2", "libnvidia-opencl.so.1"], "", False),
        (["libpocl.so.2", "libnvidia-opencl.so.1"], "pocl", False),
        (["libamdocl64.so"], "", False),
        ([], "", False),
    ],
)
def test_only_processors_may_wait(
    monkeypatch: pytest.MonkeyPatch, libraries: list[str], spec: str, waits: bool
) -> None:
    found = {f"{number}.icd": library for number, library in enumerate(libraries)}
    monkeypatch.setattr(vendors, "drivers", lambda: found)
    assert selection._is_processor(spec) is waits
