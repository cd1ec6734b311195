"""Patches: functions of other packages that accept only NumPy's own arrays get such arrays.

Most packages take what `numpy.asarray` takes. Some test ``isinstance(x, numpy.ndarray)`` first, and
do something else, or refuse, where it is false: pandas looks a mask up as column names. `DOORS`
lists the functions that make such tests, as few and as far inside as there are. Wrappers around
them turn our arrays into NumPy's and leave everything else alone. A package that is not imported is
not touched; a function that a version does not have is left out. `PACKAGES` lists packages of which
nearly every function and method would be in `DOORS`: what is compiled in them takes NumPy's arrays
alone, and asks for memory that it may write to.

Compiled code that looks at each item of a list knows Python's and NumPy's numbers by their memory,
and takes a lazy scalar for an object. So pandas and json get NumPy's scalars in place of lazy ones.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import host_copy, host_scalar, host_view
from clfuse.arrays.handle import Handle
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.config import at_import
from clfuse.functions.rebound import for_ours

from .protocols import INSTALLED

Turn = Callable[[Any], Any]
Opened = Callable[[Any], Callable[..., Any]]


# -- what is given instead ------------------------------------------------------------------------


def arrays(turn: Turn) -> Turn:
    """`turn` of an array of ours, also in a list; anything else as it is."""

    def turned(value: Any) -> Any:
        if isinstance(value, Handle):
            return turn(value)
        if type(value) is list and any(isinstance(item, Handle) for item in value):
            return [turn(item) if isinstance(item, Handle) else item for item in value]
        return value

    return turned


def deeply(turn: Turn) -> Turn:
    """`turn` of an array of ours, NumPy's scalar for a lazy one, also in lists, tuples and dicts
    within each other; anything else as it is."""

    def turned(value: Any, depth: int = DEEPEST_LIST) -> Any:
        kind: type = type(value)
        if kind in handles.SCALARS:
            return host_scalar(value)
        if issubclass(kind, Handle):
            return turn(value)
        if kind is not dict and not issubclass(kind, tuple | list):
            return value
        items = value.values() if kind is dict else value
        if not depth or _PLAIN.issuperset(map(type, items)):
            return value
        found = [turned(item, depth - 1) for item in items]
        if all(new is old for new, old in zip(found, items, strict=True)):
            return value
        if kind is dict:
            return dict(zip(value, found, strict=True))
        return kind(*found) if hasattr(kind, "_fields") else kind(found)

    return turned


_PLAIN: Final = frozenset((bool, int, float, complex, str, bytes, type(None)))

DEEPEST_LIST: Final = 4
"""Lists in lists are looked into so far."""

def called_back(turned: Turn) -> Turn:
    """`turned`; of a function of the program's, one whose results are the package's to write to."""

    def with_results(value: Any) -> Any:
        if type(value) is types.FunctionType or type(value) is types.MethodType:
            from .opened_objects import Callback

            return Callback(value, deeply(host_copy))
        return turned(value)

    return with_results


in_shared_memory: Final = deeply(seen_by_numpy)
"""What compiled code gets that may write to it."""


def numbers(value: Any, depth: int = 3) -> Any:
    """NumPy's scalars for lazy ones, also in lists, tuples and dicts down to `depth`: records of
    rows, columns by name. What has none in it is given as it is."""
    kind = type(value)
    if kind in handles.SCALARS:
        return host_scalar(value)
    if not depth or kind not in (list, tuple, dict):
        return value
    items = value.values() if kind is dict else value
    if kind is dict and not handles.SCALARS.isdisjoint(map(type, value)):
        value = {numbers(key, 0): item for key, item in value.items()}
    if _LISTS.isdisjoint(map(type, items)) and handles.SCALARS.isdisjoint(map(type, items)):
        return value
    found = [numbers(item, depth - 1) for item in items]
    if all(new is old for new, old in zip(found, items, strict=True)):
        return value
    return dict(zip(value, found, strict=True)) if kind is dict else kind(found)


_LISTS: Final = frozenset((list, tuple, dict))

DEEPEST: Final = 8
"""Documents of json are looked into so far: a list that contains itself has to end."""


def _of_its_namespace(handle: Handle) -> Any:
    """What SciPy asks for namespace and device. Unless it takes arrays of other libraries for what
    they are (SCIPY_ARRAY_API), it works with NumPy's functions, which know the processor alone: an
    array of NumPy's. (Nor does the program keep to the standard then: `host_array.standard`.)"""
    api = sys.modules.get("scipy._lib._array_api")
    return handle if getattr(api, "SCIPY_ARRAY_API", False) else _NUMPYS


_NUMPYS: Final = np.empty(0)


_host_view: Final = arrays(host_view)

_NUMBERS: Final[Mapping[str, Mapping[str, Turn]]] = {
    "json.encoder": {"JSONEncoder.iterencode": functools.partial(numbers, depth=DEEPEST)},
    **{
        f"pandas.core.{module}": dict.fromkeys(names.split(), numbers)
        for module, names in (
            ("frame", "DataFrame.__init__ DataFrame.__setitem__ DataFrame.insert"),
            ("series", "Series.__init__ Series.__setitem__"),
            ("generic", "NDFrame.fillna NDFrame.replace NDFrame.clip NDFrame.where NDFrame.mask"),
            ("indexing", "_LocationIndexer.__setitem__ _ScalarAccessIndexer.__setitem__"
             " _AtIndexer.__setitem__"),
            ("indexes.base", "Index.__new__ Index.insert"),
        )
    },
}  # fmt: skip

DOORS: Final[Mapping[str, Mapping[str, Turn]]] = {
    # What is given as an index (a mask is no list of names) passes the first, what a Series or a
    # column is made of, to be written to later, the second; operands pass the third.
    "pandas.core.common": {
        "apply_if_callable": _host_view, "maybe_iterable_to_list": arrays(host_copy),
    },
    "pandas.core.ops.common": {"item_from_zerodim": _host_view},
    "pandas.core.arrays.numeric": {"NumericArray.__init__": arrays(host_copy)},
    "pandas.core.arrays.boolean": {"BooleanArray.__init__": arrays(host_copy)},
    "pandas.core.arrays.numpy_": {"NumpyExtensionArray.__init__": arrays(host_copy)},
    "pandas.core.algorithms": {
        "_ensure_arraylike": _host_view, "isin": numbers, "take": _host_view,
    },
    "pandas._libs.window.aggregations": dict.fromkeys(  # bounds that a user's indexer has made
        map("roll_{}".format, ("apply first kurt last max mean median_c min nunique quantile rank"
                               " skew sum var").split()), _host_view,
    ),
    "pandas.core.groupby.grouper": {"get_grouper": _host_view},
    "pandas.core.groupby.ops": {"extract_result": numbers},  # what a user's function has made
    # Where a parameter is said to be of NumPy's class, of most functions and all estimators.
    "sklearn.utils._param_validation": {"_InstancesOf.is_satisfied_by": _host_view},
    "astropy.convolution.kernels": {"CustomKernel.array": _host_view},
    "astropy.utils.misc": {"JsonCustomEncoder.default": deeply(host_view)},
    # What is no array is text to be read to the one, and a file or a list to the other.
    "numpy._core.defchararray": {"array": _host_view, "asarray": _host_view},
    "numpy._core.records": {"array": _host_view},
    "numpy.lib.recfunctions": {"merge_arrays": _host_view},
    "numpy.ctypeslib": {"as_ctypes": arrays(seen_by_numpy)},
    "numpy.ctypeslib._ctypeslib": {"as_ctypes": arrays(seen_by_numpy)},  # there since NumPy 2.3
    "scipy.sparse.linalg._interface": {"aslinearoperator": _host_view},
    # Compiled classes, whose methods cannot be replaced.
    "scipy.stats.sampling": dict.fromkeys(
        ("DiscreteAliasUrn", "DiscreteGuideTable", "NumericalInverseHermite",
         "NumericalInversePolynomial", "SimpleRatioUniforms", "TransformedDensityRejection"),
        in_shared_memory,
    ),
    "pykdtree.kdtree": {"KDTree": in_shared_memory},
    "scipy._lib.array_api_compat.common._helpers": {
        "array_namespace": arrays(_of_its_namespace), "device": arrays(_of_its_namespace),
        "is_lazy_array": arrays(_of_its_namespace),
    },
    "matplotlib.axes._axes": {"Axes.errorbar": _host_view},
    "matplotlib.cbook": dict.fromkeys(("_reshape_2D", "delete_masked_points"), _host_view),
    "matplotlib.collections": {"PolyCollection.set_verts": _host_view},
    "matplotlib.colorbar": {"Colorbar.set_alpha": _host_view},
    "matplotlib.colorizer": {"Colorizer.to_rgba": _host_view},
    "matplotlib.colors": dict.fromkeys(("_to_rgba_no_colorcycle", "to_rgba_array"), _host_view),
    "matplotlib.markers": {"MarkerStyle._set_marker": _host_view},
    "matplotlib.streamplot": {"streamplot": _host_view},
    "matplotlib.tri._triinterpolate": {"TriInterpolator.__init__": in_shared_memory},
    "mpl_toolkits.mplot3d.art3d": {"Poly3DCollection.__init__": _host_view},
    "xarray.core.dataset": {"Dataset.interp": deeply(host_view)},
    "networkx.convert": {"to_networkx_graph": _host_view},
    "sympy.core.sympify": {"_is_numpy_instance": _host_view},
    "torch": dict.fromkeys(("from_numpy", "as_tensor", "asarray", "tensor"), in_shared_memory),
    "torch.utils.data._utils.collate": {"default_convert": in_shared_memory},
    "jax._src.numpy.indexing": {"eliminate_deprecated_list_indexing": deeply(host_view)},
    **_NUMBERS,
}  # fmt: skip
"""Module -> function in it, method of a class, or class -> what it gets of an argument."""

SOLVERS: Final[Mapping[str, Mapping[str, str]]] = {
    # `factorized` gives the method of what `splu` makes.
    "scipy.sparse.linalg._dsolve.linsolve": {"splu": "solve", "spilu": "solve"},
    "numexpr.necompiler": {"NumExpr": "__call__"},
}
"""Module -> function in it -> the method of its result that is a C function, which takes no array
but NumPy's."""


def _foreign(name: str, *arguments: str) -> Callable[[types.ModuleType], None]:
    """A patch: what the function of `foreign_types` of this name does."""

    def patch(module: types.ModuleType) -> None:
        from . import foreign_types  # few programs use both

        getattr(foreign_types, name)(module, *arguments)

    return patch


def _keep_generators(random: Any) -> None:
    """Have `numpy.random.default_rng`, by which packages take what they are given, take ours."""
    plain = random.default_rng

    @functools.wraps(plain)
    def default_rng(seed: Any = None) -> Any:
        kind = type(seed)
        is_ours = kind.__module__.startswith("clfuse") and hasattr(kind, "standard_normal")
        return sys.modules["clfuse"].random.default_rng(seed) if is_ours else plain(seed)

    random.default_rng = default_rng


PATCHES: Final[Mapping[str, Callable[[types.ModuleType], None]]] = {
    "numpy.random": _keep_generators,
    "autoray.autoray": _foreign("register_with_autoray"),
    "casadi.casadi": _foreign("register_with_casadi"),
    "deap.creator": _foreign("enter_table", "class_replacers"),
    "jax._src.abstract_arrays": _foreign("register_with_jax"),
    "jax._src.interpreters.xla": _foreign("register_with_xla"),
    "xarray.core.formatting": _foreign("show_in_xarray"),
    "xarray.core.indexing": _foreign("index_in_xarray"),
    "torch.utils.data._utils.collate": _foreign("enter_table", "default_collate_fn_map"),
    "autograd.numpy.numpy_boxes": _foreign("enter_table", "Box", "type_mappings"),
    "autograd.numpy.numpy_vspaces": _foreign("enter_table", "VSpace", "mappings"),
}
"""Module -> what is done to it as a whole."""

COMPILED: Final = "numba."
"""Modules of which `numba_functions` says what is done to them."""

PACKAGES: Final[dict[str, Turn]] = {
    "skimage": arrays(seen_by_numpy),
    **dict.fromkeys(
        ("MDAnalysis", "cv2", "cvxpy", "faiss", "gensim", "gymnasium", "h5py", "hdbscan", "healpy",
         "imagecodecs", "librosa", "mne", "obspy", "osqp", "ot", "pyamg", "pyfftw", "pyvista",
         "pywt", "stumpy", "tables", "taichi", "zfpy"),
        in_shared_memory,
    ),
    **dict.fromkeys(  # they read
        ("arviz", "awkward", "catboost", "control", "corner", "lightgbm", "mlxtend",
         "polars", "pyarrow", "qiskit", "seaborn", "shap", "sklearn", "sparse", "statsmodels",
         "tensornetwork", "uproot", "xgboost"),
        deeply(host_view),
    ),
    "scipy": called_back(deeply(host_view)),
}
"""Package -> what its public functions, and the methods of its classes, get of an argument. More
are named by CLFUSE_NUMPY_PACKAGES."""

_OPERATORS: Final = "add sub mul truediv floordiv mod pow matmul and or xor".split()

IN_PYTHON: Final = frozenset(("scipy", "seaborn", "sklearn", "statsmodels"))
"""Packages of which only what is written in Python is opened, it calls what is compiled: methods,
and functions where programs find them. Private modules call each other's as they are."""

_APART: Final = frozenset(("_lib", "_test_runner", "externals", "tests", "transform"))
"""Parts of these that belong to others, look at who calls them, or take our arrays' own memory."""

METHODS: Final = frozenset((
    "__init__", "__call__", "__getitem__", "__setitem__", "__array_ufunc__",
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
    *[f"__{side}{name}__" for name in _OPERATORS for side in ("", "r", "i")],
))  # fmt: skip
"""Methods of these packages' classes that are opened beside those with public names."""

COMPOSED: Final = "numpy.polynomial."
"""NumPy's modules whose functions, of which some ask for its class, run with ours in them where
they are given an array of ours (`functions.rebound`)."""


# -- putting ours before theirs -------------------------------------------------------------------


_LOOKED_INTO: Final = frozenset((dict, list, tuple, types.FunctionType, types.MethodType))
"""Kinds of arguments, beside our arrays, that may be turned into others."""

OUTPUTS: Final = frozenset(("distances", "indices", "out", "output"))
"""Parameters to which functions of SciPy's and others write: these share memory."""

COPIES: Final = frozenset(("copy", "copy_X", "copy_x"))
"""Parameters, and attributes of estimators, that are false where what is given is written to."""


IN_PLACE: Final = frozenset(("incr_mean_variance_axis", "lobpcg"))
"""Functions that write to what they are given, or whose compiled code asks as if they did."""


def _overwrites(options: Mapping[str, Any]) -> bool:
    return any(
        name in COPIES if value is False else value is True and name.startswith("overwrite_")
        for name, value in options.items()
    )


def open_to_ours(function: Callable[..., Any], turned: Turn) -> Callable[..., Any]:
    """`function`, which gets what `turned` gives of each of its arguments; where it is allowed to
    write to these, they share memory."""
    looked_into = handles.SCALARS | {handles.ARRAY, *_LOOKED_INTO}
    always = getattr(function, "__name__", "") in IN_PLACE

    def shared(value: Any) -> Any:
        return turned(in_shared_memory(value))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if kwargs else args
        if looked_into.isdisjoint(map(type, given)):
            return function(*args, **kwargs)
        owner = getattr(args[0], "__dict__", {}) if args else {}
        turn = shared if always or _overwrites(kwargs) or _overwrites(owner) else turned
        named = {
            name: in_shared_memory(value) if name in OUTPUTS else turn(value)
            for name, value in kwargs.items()
        }
        return function(*map(turn, args), **named)

    return call


def open_doors(module: types.ModuleType, is_new: bool = False) -> None:
    """Put our functions before those of the module, also where they were imported from it."""
    package = module.__name__.partition(".")[0]
    if not _has_doors(module.__name__):
        return  # what is compiled may name itself otherwise than it was found
    if module.__name__ == "numpy.ctypeslib":
        from .opened_objects import open_pointers

        open_pointers(module)
    if module.__name__.startswith(COMPILED):
        from . import numba_functions

        numba_functions.patch(module, in_shared_memory)
        return
    if module.__name__ in PATCHES:
        PATCHES[module.__name__](module)
        if module.__name__ not in DOORS:
            return
    if package in PACKAGES and not (_is_installed(module) and _takes_numpys_alone(package)):
        return
    for below in list(vars(module).values()) if package in PACKAGES else ():
        if isinstance(below, types.ModuleType) and _is_made_by(below, module):
            open_doors(below)
    _open(module, _doors_of(module), is_new)


def _takes_numpys_alone(package: str) -> bool:
    """Whether a package does not keep to the array API standard, as SciPy and scikit-learn do where
    they are told to."""
    return package not in ("scipy", "sklearn") or os.environ.get("SCIPY_ARRAY_API", "0") == "0"


def _is_installed(module: types.ModuleType) -> bool:
    """Whether a module is none of the program's own that is called as a package is; what compiled
    code has made has no file."""
    file = getattr(module, "__file__", None)
    return file is None or not INSTALLED.isdisjoint(file.split(os.sep))


def open_compiled(module: types.ModuleType) -> None:
    """Have the functions of a compiled module of the program's take our arrays, in whose memory
    they may write, and the methods of its classes where these take others."""
    _open(module, _all_doors(module, in_shared_memory))


def _open(module: types.ModuleType, doors: Mapping[str, Opened], is_new: bool = False) -> None:
    from .opened_objects import name_for_pickle, open_subclass

    prefix, last = module.__name__.partition(".")[0], reversed(list(sys.modules.items()))
    family = [other for name, other in last if name.startswith(prefix)]
    if is_new and module in family:  # what was there before has imported nothing from it yet
        family = family[: family.index(module)]
    made: dict[str, tuple[Any, Any]] = {}
    for name, opened in doors.items():
        kind, is_method, method = name.partition(".")
        if is_method:
            _open_method(vars(module).get(kind), method, opened)
            continue
        function = vars(module).get(name)
        if not callable(function):
            continue
        is_class = isinstance(function, type)
        open_one = open_subclass(function, opened) if is_class else opened(function)
        setattr(module, name, open_one)
        name_for_pickle(open_one, module.__name__, name)
        if getattr(function, "__module__", None) == module.__name__:
            made[name] = function, open_one
    for other in family:
        for name in made.keys() & vars(other).keys():
            if vars(other)[name] is made[name][0]:
                setattr(other, name, made[name][1])


def _is_made_by(below: types.ModuleType, module: types.ModuleType) -> bool:
    """Whether the compiled code of a module has made another within it, which no finder sees."""
    return below.__spec__ is None and below.__name__.startswith(f"{module.__name__}.")


def _open_method(kind: Any, name: str, opened: Opened) -> None:
    function = vars(kind).get(name) if isinstance(kind, type) else None
    if isinstance(vars(type(kind)).get(name), property):
        return  # the class's own class has one of that name, which would be asked to set it
    if isinstance(function, staticmethod | classmethod):  # Python makes one of `__new__`
        setattr(kind, name, type(function)(opened(function.__func__)))
    elif inspect.isroutine(function) and callable(function) and hasattr(function, "__get__"):
        setattr(kind, name, opened(function))  # what has no `__get__` is no method
    elif isinstance(function, types.GetSetDescriptorType):
        plain = function.__get__, function.__set__, function.__delete__, function.__doc__
        setattr(kind, name, property(plain[0], opened(plain[1]), *plain[2:]))
    elif isinstance(function, property) and function.fset is not None:
        setattr(kind, name, function.setter(opened(function.fset)))


def _has_doors(name: str) -> bool:
    is_listed = name in DOORS or name in SOLVERS or name in PATCHES
    return is_listed or name.startswith((COMPOSED, COMPILED)) or _is_of_package(name)


def _is_of_package(name: str) -> bool:
    package, _, rest = name.partition(".")
    if package not in PACKAGES:
        return False
    return package not in IN_PYTHON or _APART.isdisjoint(rest.split("."))


def _doors_of(module: types.ModuleType) -> Mapping[str, Opened]:
    name = module.__name__
    if name in DOORS:
        turns = DOORS[name].items()
        return {key: functools.partial(open_to_ours, turned=turn) for key, turn in turns}
    if name in SOLVERS:
        from .opened_objects import with_open_method

        whole = functools.partial(open_to_ours, turned=in_shared_memory)
        read = functools.partial(open_to_ours, turned=_host_view)
        return {
            key: functools.partial(
                with_open_method, name=method, opened=whole if method == "__call__" else read
            )
            for key, method in SOLVERS[name].items()
        }
    if name.startswith(COMPOSED):
        return {
            key: for_ours
            for key, value in vars(module).items()
            if key[0] != "_" and type(value) is types.FunctionType and value.__module__ == name
        }
    return _all_doors(module, PACKAGES[name.partition(".")[0]])


def _all_doors(module: types.ModuleType, turn: Turn) -> Mapping[str, Opened]:
    """What opens all that is public of a module."""

    def open_once(function: Callable[..., Any]) -> Callable[..., Any]:
        is_python = type(function) is types.FunctionType  # what is compiled may have no hash
        known: Any = _opened.get(function) if is_python else None
        if known is None:
            known = open_to_ours(function, turn)
            known.of_package = True
            if is_python:
                _opened[function] = known
        return known  # type: ignore[no-any-return]

    return dict.fromkeys(_public(module), open_once)


_opened: Final[dict[Callable[..., Any], Any]] = {}
"""What stands for a function, wherever it is found."""


def _public(module: types.ModuleType) -> Iterator[str]:
    """The names of a module's own functions, and of its classes' methods."""
    package, _, rest = module.__name__.partition(".")
    if package in IN_PYTHON:
        yield from _public_in_python(module, package, rest.rpartition(".")[2][:1] == "_")
        return
    if any(name.endswith(_SWIG) for name in vars(module)):
        return
    for key, value in vars(module).items():
        # Of what cannot be called nothing is asked: it may be a module that is imported at that.
        if key[0] == "_" or not callable(value) or hasattr(value, "of_package"):
            continue
        home = getattr(value, "__module__", None)  # compiled functions may not know it
        if home is not None and home != module.__name__:
            continue
        if type(value).__module__.startswith(COMPILED):
            continue  # `numba_functions` opens it, and other compiled functions call it
        if inspect.isroutine(value):
            yield key
        elif isinstance(value, type) and _is_open(value):
            for name in vars(value):
                if name[0] != "_" or name in METHODS:
                    yield f"{key}.{name}"


def _public_in_python(module: types.ModuleType, package: str, is_private: bool) -> Iterator[str]:
    """`_public` of one of `IN_PYTHON`."""
    for key, value in vars(module).items():
        if key[0] == "_":
            continue
        if type(value) is types.FunctionType:
            of_package = (value.__module__ or "").partition(".")[0] == package
            if of_package and not is_private and not hasattr(value, "of_package"):
                yield key
        elif issubclass(type(value), type) and value.__module__ == module.__name__:
            if not _is_open(value):
                continue
            for name, method in vars(value).items():
                if (name[0] != "_" or name in METHODS) and type(method) in _DESCRIBED:
                    yield f"{key}.{name}"


_DESCRIBED: Final = frozenset((types.FunctionType, staticmethod, classmethod, property))

_SWIG: Final = "_swigregister"
"""Names of what gives a class the functions of a module that SWIG has made, which must be those of
C: the classes, which are written in Python, are opened instead."""


def _is_open(kind: type) -> bool:
    """Whether a class takes other methods than it has; of the compiled ones not all do."""
    return bool(kind.__flags__ & HEAP_TYPE) and not kind.__flags__ & IMMUTABLE_TYPE


HEAP_TYPE: Final = 1 << 9
IMMUTABLE_TYPE: Final = 1 << 8
"""Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_IMMUTABLETYPE: https://docs.python.org/3/c-api/typeobj.html"""


class Doors:
    """A finder that finds nothing by itself: it patches the modules that other finders find."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the others find for a module to be patched; None for all others."""
        if not _has_doors(name):
            return None
        found = None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                found = finder.find_spec(name, path, target)
                if found is not None:
                    break
        loader = getattr(found, "loader", None)
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                open_doors(module, is_new=True)

            loader.exec_module = exec_module
        return found


def install() -> None:
    """Patch the modules that are imported already, and those that will be."""
    named = str(at_import("numpy_packages")).split(",")
    for package in filter(None, map(str.strip, named)):
        PACKAGES.setdefault(package, in_shared_memory)
    for name, module in list(sys.modules.items()):
        if _has_doors(name):
            open_doors(module)
    sys.meta_path.insert(0, Doors())
