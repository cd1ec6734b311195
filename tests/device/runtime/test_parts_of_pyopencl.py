"""Using a device loads pyopencl's compiled part; a program that asks for more finds all of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMPUTE = """
import numpy
import clfuse as np
x = np.arange(300_000.0)
assert float((np.sqrt(x) * 2).sum()) > 0
np.evaluate(np.sqrt(x) + 1, build=True)
assert np.stats()["kernels_launched"], np.stats()
"""

LOADED = "import sys; from clfuse.process import deferred\n"

WHOLE = """
import pyopencl as cl
context = np.get_device().context
queue = cl.CommandQueue(context)
values = numpy.arange(8, dtype=numpy.float32)
buffer = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
program = cl.Program(context, "__kernel void twice(__global float *x) {x[get_global_id(0)] *= 2;}")
twice = cl.Kernel(program.build(), "twice")
twice(queue, (8,), None, buffer)
found = numpy.empty_like(values)
cl.enqueue_copy(queue, found, buffer)
assert found.tolist() == (values * 2).tolist()
twice.set_args(buffer)
cl.enqueue_nd_range_kernel(queue, twice, (8,), None).wait()
from pyopencl import array
assert array.to_device(queue, values).get().tolist() == values.tolist()
assert cl.VERSION_TEXT == cl.version.VERSION_TEXT
assert str(cl.LogicError("three")) and context.get_info(cl.context_info.NUM_DEVICES) >= 1
"""


def run(program: str, tmp_path, **variables: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], text=True, capture_output=True,
        env={**os.environ, "CLFUSE_HOST_US": "0", "XDG_CACHE_HOME": str(tmp_path), **variables},
        timeout=300,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_computing_runs_no_text_of_pyopencls_package(tmp_path):
    checks = """
assert isinstance(sys.modules["pyopencl"], deferred.Module)
print(sorted({"pytools", "pyopencl.tools", "pyopencl.cltypes", "sqlite3"} & set(sys.modules)))
"""
    assert run(COMPUTE + LOADED + checks, tmp_path) == "[]\n"


@pytest.mark.parametrize("program", [COMPUTE + WHOLE, "import pyopencl\n" + COMPUTE + WHOLE,
                                     "import pyopencl.invoker\n" + COMPUTE + WHOLE],
                         ids=["later", "before", "invoker"])  # fmt: skip
def test_programs_that_use_pyopencl_find_all_of_it(tmp_path, program):
    checks = """
assert type(sys.modules["pyopencl"]) is type(sys)
import pyopencl.invoker
print(type(pyopencl.invoker.invoker_cache).__name__)
"""
    assert run(program + LOADED + checks, tmp_path) == "_InMemory\n"


def test_a_release_with_other_parts_is_imported_whole(tmp_path):
    hidden = """
import sys
class Hides:
    def find_spec(self, name, path=None, target=None):
        if name == "pyopencl._monkeypatch" and not hidden:
            hidden.append(name)
            raise ImportError(name)
hidden = []
from importlib.machinery import PathFinder
original = PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    Hides().find_spec(name) or original(name, path, target))
"""
    checks = """
assert type(sys.modules["pyopencl"]) is type(sys) and hidden == ["pyopencl._monkeypatch"]
print("pytools" in sys.modules)
"""
    assert run(hidden + COMPUTE + LOADED + checks, tmp_path) == "True\n"


def test_contexts_made_beside_other_threads_are_pyopencls(xp):
    import pyopencl as cl

    from clfuse.runtime.drivers import opencl

    handle = xp.get_device().handle
    made, wanted = opencl.create_context([handle]), cl.Context([handle])
    assert type(made) is type(wanted)
    for question in (cl.context_info.DEVICES, cl.context_info.REFERENCE_COUNT):
        assert made.get_info(question) == wanted.get_info(question)
    with pytest.raises(cl.Error):
        opencl.create_context([])
