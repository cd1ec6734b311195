"""Templates come as the modules that were shipped, or are compiled in memory: the same text, and
never from a cache."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mako.template import Template

from clfuse.codegen import templates

NAME = "map.cl.mako"


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    templates._template.cache_clear()
    yield
    templates._template.cache_clear()


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of templates with one of them, and what was shipped for it."""
    text = b"% for n in range(count):\n${n},\n% endfor\n"
    folder = tmp_path / "kernels"
    (folder / "compiled").mkdir(parents=True)
    (folder / NAME).write_bytes(text)
    code = Template(text=text, uri=NAME, strict_undefined=True).code
    digest = hashlib.sha256(text).hexdigest()
    (folder / "compiled" / "map_cl_mako.py").write_text(f'{code}\n_source_digest = "{digest}"\n')
    monkeypatch.setattr(templates, "folder", lambda: folder)
    return folder


def test_what_was_shipped_is_used_and_renders_as_the_text_does(kernels: Path) -> None:
    assert templates._shipped(kernels / NAME) is not None
    assert templates.render(NAME, {"count": 3}) == "0,\n1,\n2,\n"
    with pytest.raises(NameError, match="count"):
        templates.render(NAME, {})
    shutil.rmtree(kernels / "compiled")
    templates._template.cache_clear()
    assert templates._shipped(kernels / NAME) is None
    assert templates.render(NAME, {"count": 3}) == "0,\n1,\n2,\n"
    with pytest.raises(NameError, match="count"):
        templates.render(NAME, {})


def test_another_text_than_was_shipped_is_compiled(kernels: Path) -> None:
    (kernels / NAME).write_text("something else")
    assert templates.render(NAME, {}) == "something else"


def test_what_another_mako_has_made_is_not_used(kernels: Path) -> None:
    shipped = kernels / "compiled" / "map_cl_mako.py"
    shipped.write_text(shipped.read_text().replace("_magic_number = ", "_magic_number = 9"))
    assert templates._shipped(kernels / NAME) is None
    assert templates.render(NAME, {"count": 1}) == "0,\n"


def test_every_template_is_compiled_in_memory_as_it_is_shipped() -> None:
    for source in sorted(templates.folder().glob("*.cl.mako")):
        shipped = templates._shipped(source)
        if shipped is not None:  # a checkout whose templates were edited since it was installed
            made = Template(text=source.read_bytes(), uri=source.name, strict_undefined=True).code
            written = Path(shipped.__file__ or "").read_text(encoding="utf-8")
            assert _steps(written) == _steps(made)


def _steps(code: str) -> list[str]:
    """The words, sorted: Mako lists and defines names in the order of sets."""
    body = code[code.index("def render_body"):code.index("__M_BEGIN_METADATA")]
    return sorted(re.findall(r"\w+", body))


def test_mako_is_imported_without_pygments() -> None:
    """Pygments takes 50 ms, and would color pages of errors that nobody sees."""
    code = (
        "import sys\n"
        "from clfuse.codegen import templates\n"
        "templates._template('map.cl.mako')\n"
        "assert 'mako.exceptions' in sys.modules\n"
        "assert 'mako.ext.pygmentplugin' not in sys.modules\n"
        "assert not any(name.startswith('pygments') for name in sys.modules)\n"
        "import mako.exceptions\n"
        "try:\n"
        "    1 / 0\n"
        "except ZeroDivisionError:\n"
        "    assert b'ZeroDivisionError' in mako.exceptions.html_error_template().render()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
