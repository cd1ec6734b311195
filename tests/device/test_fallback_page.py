"""The guide's list of what falls back on a GPU is what a simulated one does."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests import fallbacks

pytestmark = pytest.mark.clfuse_only


def test_the_list_of_fallbacks_is_what_is_seen(xp: ModuleType) -> None:
    import pyopencl as cl

    if not xp.get_device().handle.type & cl.device_type.CPU:
        pytest.skip("only a CPU device appears as another one")
    seen = fallbacks.on_simulated_device()
    assert len(seen) > 400
    assert fallbacks.committed() == fallbacks.listed(seen), "run: python -m tests.fallbacks"


def test_an_operation_without_a_reason_is_an_error() -> None:
    with pytest.raises(KeyError):
        list(fallbacks.rows({"sum(x)": ["sum"]}))


def test_a_generators_methods_are_one_operation() -> None:
    assert fallbacks.shown("random.Generator.zipf") == fallbacks.shown("random.RandomState.zipf")
    table = {"det(d)": ["det"], "power.accumulate(x)": ["power.accumulate"], "sum(x)": []}
    assert [row.split("|")[2].strip() for row in fallbacks.rows(table)] == [
        "`det`", "`power.accumulate`",
    ]  # fmt: skip
