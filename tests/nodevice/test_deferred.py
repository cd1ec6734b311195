"""Modules whose text runs when a name is asked for that they lack."""

from __future__ import annotations

import importlib
import sys
import threading
from contextlib import contextmanager
from functools import partial

import pytest

from clfuse.process import deferred

TEXT = """
import time
globals().get("ran", []).append(__name__)
time.sleep(0.05)
value = 5
changed = 1
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Import a package by what is given, and return it."""
    folder = tmp_path / "later_part"
    folder.mkdir()
    (folder / "__init__.py").write_text(TEXT)
    (folder / "other.py").write_text("name = 'other'")
    monkeypatch.syspath_prepend(tmp_path)

    def load(**more):
        loader = partial(deferred.Deferring, **more)
        with deferred.found_by({"later_part": loader}):
            return importlib.import_module("later_part")

    yield load
    for name in [each for each in sys.modules if each.split(".")[0] == "later_part"]:
        del sys.modules[name]


def test_its_text_runs_at_the_first_name_that_it_lacks(package):
    ran = []
    loaded = package(names={"ran": ran, "early": 3})
    assert isinstance(loaded, deferred.Module)
    assert loaded.early == 3
    assert loaded.__name__ == "later_part"
    assert loaded.__path__
    assert not hasattr(loaded, "__wrapped__")
    other = importlib.import_module("later_part.other")
    assert loaded.other is other
    assert not ran
    assert loaded.value == 5
    assert ran == ["later_part"]
    assert type(loaded) is type(sys)
    assert importlib.import_module("later_part") is loaded
    with pytest.raises(AttributeError, match="module 'later_part' has no attribute 'missing'"):
        loaded.missing  # noqa: B018
    assert ran == ["later_part"]


@pytest.mark.parametrize("asks", [dir, lambda module: hasattr(module, "missing")])
def test_who_looks_at_all_its_names_has_it_run(package, asks):
    ran = []
    loaded = package(names={"ran": ran})
    asks(loaded)
    assert ran == ["later_part"]


def test_a_name_that_is_set_is_not_lost(package):
    ran = []
    loaded = package(names={"ran": ran})
    loaded.changed = 2
    assert (ran, loaded.changed, loaded.value) == (["later_part"], 2, 5)


def test_threads_that_ask_at_once_have_it_run_once(package):
    ran = []
    loaded = package(names={"ran": ran})
    found = []
    threads = [threading.Thread(target=lambda: found.append(loaded.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [5] * 8
    assert ran == ["later_part"]


def test_text_that_fails_runs_again_when_it_is_asked_again(package, tmp_path):
    (tmp_path / "later_part" / "__init__.py").write_text("raise OSError('not yet')")
    loaded = package()
    for _ in range(2):
        with pytest.raises(OSError, match="not yet"):
            loaded.value  # noqa: B018
    (tmp_path / "later_part" / "__init__.py").write_text("value = 'the whole of it'")
    importlib.invalidate_caches()
    assert loaded.value == "the whole of it"


def test_its_text_runs_within_what_is_given(package):
    seen = []

    @contextmanager
    def around(module):
        seen.append(("before", "value" in vars(module)))
        yield
        seen.append(("after", module.value))

    loaded = package(around=around)
    assert not seen
    assert loaded.value == 5
    assert seen == [("before", False), ("after", 5)]


def test_modules_that_are_there_already_stay(package):
    import json

    with deferred.found_by({"json": deferred.Deferring}):
        assert importlib.import_module("json") is json
    assert not isinstance(json, deferred.Module)
    assert not any(type(finder).__module__ == deferred.__name__ for finder in sys.meta_path)
