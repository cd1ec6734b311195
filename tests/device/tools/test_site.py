"""The site's reference has every public name, and its programs give what NumPy gives."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import types
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import clfuse
from clfuse.namespace import coverage
from clfuse.tools.demo import runner
from clfuse.tools.substitution import Substitution

pytestmark = pytest.mark.clfuse_only

TOP = Path(__file__).parents[3]
SITE = TOP / "ci" / "site"


def loaded(name: str) -> types.ModuleType:
    """A module of the site's folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


reference = loaded("reference")
gallery = loaded("gallery")
# Two draw random numbers under way, which are not NumPy's.
ESTIMATES = ("monte_carlo", "random_walks")


def has(name: str) -> bool:
    """Whether this release of NumPy has a name: ``"linalg.inv"``."""
    found = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None or name == "newaxis"


PROGRAMS = {
    name: source
    for name, source in reference.examples().items()
    if has(name) and not name.startswith("random.")
}


@pytest.fixture(autouse=True)
def _as_users_have_it():
    """Small programs are NumPy's, as they are where the site is built."""
    host_us = {row.name: row.default for row in clfuse.config.SETTINGS}["host_us"]
    with clfuse.config.override(host_us=host_us):
        yield


def entries() -> tuple[reference.Entry, ...]:
    pytest.importorskip("dask")  # clfuse.dask is in the reference
    return reference.entries()


def public_names() -> set[str]:
    names = {name for name in dir(clfuse) if name[0] != "_"}
    names |= {f"ndarray.{name}" for name in dir(clfuse.ndarray) if name[0] != "_"}
    names |= {f"Kernel.{name}" for name in ("reduce", "scan", "route", "source", "python")}
    for module in (*reference.SUBMODULES, *reference.OWN_MODULES):
        found = importlib.import_module(f"clfuse.{module}")
        listed = found.__all__ if module in reference.OWN_MODULES else dir(found)
        names |= {f"{module}.{name}" for name in listed if name[0] != "_"}
    return names


def test_reference_has_every_public_name_once():
    paths = [entry.path for entry in entries()]
    assert len(paths) == len(set(paths))
    assert set(paths) == public_names()


def test_reference_has_every_module_that_clfuse_makes():
    from clfuse.namespace import SUBMODULES

    assert set(reference.SUBMODULES) == set(SUBMODULES)


def test_every_entry_has_a_page_and_callables_a_signature():
    pages = {page.name for page in reference.PAGES}
    for entry in entries():
        assert entry.page in pages, entry
        assert entry.status in reference.STATUS or entry.page in reference.CLASSES, entry
        if entry.directive in ("function", "method"):
            assert re.match(r"\(.*\)$", entry.signature, re.DOTALL), entry


def test_every_function_has_a_program_of_its_own():
    lacking = [
        entry.path
        for entry in entries()
        if entry.directive == "function" and hasattr(np, entry.path.partition(".")[0])
        if entry.path not in reference.examples() and f"callable(np.{entry.path})" in entry.program
    ]
    assert lacking == []  # they need a line in ci/site/examples.txt


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_of_the_reference_gives_what_numpy_gives(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = reference.shown(PROGRAMS[name], np)
        actual, _ = reference.shown(PROGRAMS[name], clfuse)
    assert actual == expected


def test_who_computes_is_what_the_command_coverage_says():
    kinds = {"native": "recorded", "files": "files", "library": "at call", "host": "host",
             "numpy": "nothing"}  # fmt: skip
    found = {entry.path: entry.status for entry in entries()}
    kind_of = coverage()
    functions = [name for name in np.__all__ if name in kind_of]
    assert len(functions) > 400
    for name in functions:
        if not isinstance(getattr(np, name), type):
            assert found[name] == kinds[kind_of[name]], name


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    links = loaded("links")
    page = '<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
    (tmp_path / "a.html").write_text(f'{page}<script src="https://example.org/x.js"></script>')
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="https://example.org">out</a>')
    assert links.faults(tmp_path) == [
        "a.html: b.html#gone leads to no heading",
        "a.html: c.html leads to no file",
        "a.html: loads https://example.org/x.js, which is not of the site",
    ]


def test_the_citation_has_the_version_of_the_package():
    version = re.search(r'version="(.*?)"', (TOP / "setup.py").read_text(encoding="utf-8"))[1]
    assert f"\nversion: {version}\n" in (SITE / "CITATION.cff").read_text(encoding="utf-8")


def test_gallery_has_the_programs_that_people_know():
    assert len(gallery.program_paths()) >= 15
    for path in gallery.program_paths():
        source = path.read_text(encoding="utf-8")
        assert "import numpy as np" in source
        assert "clfuse" not in re.sub(r'(?s)^""".*?"""', "", source), "a plain NumPy script"


@pytest.mark.parametrize("path", gallery.program_paths(), ids=lambda path: path.stem)
def test_program_of_the_gallery_agrees_with_numpy(path, tmp_path):
    pytest.importorskip("matplotlib")
    plain = runner.Contender(path, True, nullcontext(), runner.finish_numpy)
    fused = runner.Contender(path, True, Substitution([str(path.parent)]), runner.finish_clfuse)
    expected, _ = plain.run()
    for host_us in (0, 50):  # by kernels, and as users have it
        with clfuse.config.override(host_us=host_us, build_after_ms=0 if host_us == 0 else 50):
            actual, _ = fused.run()
        error, is_estimate = runner.disagreement(expected, actual)
        assert is_estimate == (path.stem in ESTIMATES)
        assert error <= (5 if is_estimate else 1e-9)
        del actual
    assert Path(plain.module.draw(expected, tmp_path)).is_file()


def test_program_of_the_gallery_runs_unedited_by_run(tmp_path):
    pytest.importorskip("matplotlib")
    path = gallery.PROGRAMS / "mandelbrot.py"
    gallery.run(["-m", "clfuse", "run", str(path), "--quick"], tmp_path)
    assert (tmp_path / "mandelbrot.png").is_file()


def test_a_program_that_fails_stops_the_site(tmp_path):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        gallery.run(["-c", "1 / 0"], tmp_path)
