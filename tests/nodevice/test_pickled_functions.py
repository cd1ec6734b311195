"""Functions and methods of clfuse are pickled by their public names, as NumPy's are.

``multiprocessing``, joblib and Dask send ``np.median`` and `np.ndarray.sum` to other processes so.
"""

import importlib
import pickle
import types

import numpy as np
import pytest

import clfuse as cf

SUBMODULES = ("", "fft", "linalg", "random", "testing", "lib", "lib.stride_tricks")

FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    type(np.concatenate),
)


def found_in(module, path):
    for part in filter(None, path.split(".")):
        module = getattr(module, part)
    return module


def is_pickled(value):
    try:
        return pickle.loads(pickle.dumps(value)) is not None
    except (AttributeError, TypeError, pickle.PicklingError):
        return False


def functions(path):
    module = importlib.import_module(f"numpy.{path}".rstrip("."))
    for name in dir(module):
        reference = getattr(module, name)
        is_one = isinstance(reference, (*FUNCTIONS, np.ufunc)) and name[0] != "_"
        if is_one and is_pickled(reference):
            yield name


@pytest.mark.parametrize("path", SUBMODULES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_functions_come_back_from_a_pickle_as_themselves(path):
    ours = found_in(cf, path)
    others = [
        name for name in functions(path)
        if pickle.loads(pickle.dumps(getattr(ours, name))) is not getattr(ours, name)
    ]  # fmt: skip
    assert others == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_methods_come_back_from_a_pickle_as_themselves():
    for name in dir(np.ndarray):
        method = getattr(cf.ndarray, name, None)
        if name[:2] == "__" or not callable(method) or not is_pickled(getattr(np.ndarray, name)):
            continue
        assert pickle.loads(pickle.dumps(method)) is method


@pytest.mark.parametrize(("path", "name", "shown"), [
    ("", "diag", "clfuse"), ("", "median", "clfuse"), ("", "sin", "clfuse"),
    ("", "matmul", "clfuse"), ("linalg", "svd", "clfuse.linalg"),
    ("linalg", "cross", "clfuse.linalg"), ("fft", "fft", "clfuse.fft"),
    ("random", "rand", "clfuse.random"), ("testing", "assert_allclose", "clfuse.testing"),
])  # fmt: skip
def test_a_function_says_where_a_program_finds_it(path, name, shown):
    # Dask's `__array_function__` looks for its own function by the module of NumPy's.
    function = getattr(found_in(cf, path), name)
    assert (function.__module__, function.__name__) == (shown, name)
    assert function.__qualname__ == name
