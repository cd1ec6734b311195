"""Compiled modules of a program get NumPy's arrays in place of ours under ``clfuse run``."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.support.processes import python

INCLUDE = sysconfig.get_path("include")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or not (Path(INCLUDE) / "Python.h").exists() or os.name != "posix",
    reason="a C compiler and Python's headers are needed",
)

SOURCE = r"""
#include <Python.h>
static PyObject *kind(PyObject *self, PyObject *value)
{
    (void)self;
    return PyUnicode_FromString(Py_TYPE(value)->tp_name);
}
static PyObject *zero(PyObject *self, PyObject *value)
{
    Py_buffer view;
    (void)self;
    if (PyObject_GetBuffer(value, &view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0) return NULL;
    for (Py_ssize_t place = 0; place < view.len; place++) ((char *)view.buf)[place] = 0;
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {{"kind", kind, METH_O, 0}, {"zero", zero, METH_O, 0}, {0}};
static PyType_Slot slots[] = {{Py_tp_methods, functions}, {0, 0}};
static PyType_Spec spec = {"fast.Kept", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fast", 0, -1, functions};
PyMODINIT_FUNC PyInit_fast(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *kept = PyType_FromSpec(&spec);
    if (!module || !kept || PyModule_AddObject(module, "Kept", kept) < 0) return NULL;
    return module;
}
"""

SCRIPT = """
import numpy as np
import fast
from fast import kind as also
x = np.ones((2, 3)) + 1
print(fast.kind(x), also(x[0]), fast.Kept().kind(x.T), fast.kind(x.sum()), fast.kind((x,)))
y = x.copy()
fast.zero(x)
fast.zero(y[1])
print(x.tolist(), y.tolist(), fast.kind("text"))
"""


def built(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "fast.c").write_text(SOURCE, encoding="utf-8")
    made = folder / f"fast{SUFFIX}"
    command = ["cc", "-shared", "-fPIC", "-O0", "-I", INCLUDE, "fast.c", "-o", str(made)]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return made


def test_compiled_modules_of_the_program_get_numpys_arrays(tmp_path: Path) -> None:
    built(tmp_path / "project")
    (tmp_path / "project" / "script.py").write_text(SCRIPT, encoding="utf-8")
    finished = python("-m", "clfuse", "run", "script.py", cwd=tmp_path / "project")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == [
        "numpy.ndarray numpy.ndarray numpy.ndarray numpy.float64 tuple",
        "[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]] [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]] str",
    ]


def test_installed_compiled_modules_are_left_alone(tmp_path: Path) -> None:
    installed = built(tmp_path / "site-packages").parent
    script = """
import numpy, fast
print(fast.kind(numpy.ones(3)), hasattr(fast.kind, "__wrapped__"))
"""
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    for options, opened in (((), "False"), (("--include", "fast"), "True")):
        finished = python(
            "-m", "clfuse", "run", *options, "script.py", cwd=tmp_path, PYTHONPATH=str(installed)
        )
        assert finished.stdout.split()[1:] == [opened], finished.stderr
