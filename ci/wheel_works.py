"""Computes something with an installed clfuse, far from a checkout: `ci/wheel`, `ci/wheels`.

``python wheel_works.py [compiled]``; with `compiled` the compiled part must be in use.
"""

import sys
from pathlib import Path

import numpy

import clfuse
from clfuse._core import loading
from clfuse.codegen import templates

prefix = Path(sys.prefix).resolve()
for found in (Path(clfuse.__file__), Path(templates.folder())):
    assert prefix in found.resolve().parents, f"{found} is not what is installed"
assert templates.library("complex.cl")
sources = list(templates.folder().glob("*.cl.mako"))
assert sources
for source in sources:
    assert templates._shipped(source), source
loading.load()
assert "compiled" not in sys.argv or loading.state() == "in use", loading.state()
x = clfuse.linspace(0, 1, 1_000_000)
y = clfuse.sin(x) ** 2 + clfuse.cos(x) ** 2
clfuse.evaluate(y)
numpy.testing.assert_allclose(clfuse.asnumpy(y), 1)
print(f"the wheel computes on {clfuse.get_device()!r}")
