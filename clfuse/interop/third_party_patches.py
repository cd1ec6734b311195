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
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import host_copy, host_scalar, host_view
from clfuse.arrays.handle import Handle
from clfuse.arrays.shared_storage import seen_by_numpy
from clfuse.dispatch.overrides import PLAIN_VALUES
from clfuse.dispatch.stand_ins import GENERATORS
from clfuse.functions.math.ufunc import ufunc

from .protocols import INSTALLED

Turn = Callable[[Any], Any]


# -- what is given instead ------------------------------------------------------------------------


def arrays(turn: Turn) -> Turn:
    """`turn` of an array of ours and NumPy's scalar for a lazy one, also in a list; anything else
    as it is."""

    def turned(value: Any) -> Any:
        kind = type(value)
        if kind in handles.SCALARS:
            return host_scalar(value)
        if issubclass(kind, Handle):
            return turn(value)
        if kind is list and any(issubclass(type(item), Handle) for item in value):
            return [turned(item) if issubclass(type(item), Handle) else item for item in value]
        return value

    return turned


def deeply(turn: Turn, other: Turn | None = None) -> Turn:
    """`turn` of an array of ours, NumPy's scalar for a lazy one, also in lists, tuples and dicts
    within each other, NumPy's class for ours; of anything else what `other` makes of it."""

    def turned(value: Any, depth: int = DEEPEST_LIST) -> Any:
        kind: type = type(value)
        if kind in handles.SCALARS:
            return host_scalar(value)
        if issubclass(kind, Handle):
            return turn(value)
        if kind is not dict and not issubclass(kind, tuple | list):
            if value is handles.ARRAY:
                return np.ndarray
            return value if other is None else other(value)
        items = value.values() if kind is dict else value
        if not depth or PLAIN_VALUES.issuperset(map(type, items)):
            return value
        found = [turned(item, depth - 1) for item in items]
        if all(new is old for new, old in zip(found, items, strict=True)):
            return value
        if kind is dict:
            return dict(zip(value, found, strict=True))
        if not hasattr(kind, "_fields"):
            return kind(found)
        # Some of the results of SciPy have fields that are no items.
        more = value.__getnewargs_ex__()[1] if hasattr(kind, "__getnewargs_ex__") else {}
        return kind(*found, **{name: turned(item, depth - 1) for name, item in more.items()})

    return turned


def drawn_from(value: Any) -> Any:
    """For a random generator of ours, or our module of that name, one that draws NumPy's arrays;
    anything else as it is."""
    if isinstance(value, types.ModuleType) and value is sys.modules.get("clfuse.random"):
        value = value.mtrand._rand
    elif type(value) not in GENERATORS:
        return value
    from .opened_objects import Draws

    return Draws(value, _of_draws)


def _of_draws(value: Any) -> Any:
    """What a package gets of a generator: numbers and arrays of NumPy's, or other generators."""
    return list(map(drawn_from, value)) if type(value) is list else _in_host_copy(value)


def is_plain(value: Any) -> bool:
    """Whether a list, a tuple or a dict has nothing in it that could be ours, and a value is no
    module."""
    if type(value) in _PLAIN:
        return True
    if type(value) is dict:
        return _PLAIN.issuperset(map(type, value.values()))
    if isinstance(value, tuple | list):
        return _PLAIN.issuperset(map(type, value))
    return not isinstance(value, slice | types.ModuleType)


_PLAIN: Final = frozenset((
    bool, int, float, complex, str, bytes, type(None), np.ndarray, np.bool_, np.float32,
    np.float64, np.int64, np.intp,
))  # fmt: skip

DEEPEST_LIST: Final = 4
"""Lists in lists are looked into so far."""

def called_back(value: Any) -> Any:
    """For a function of the program's one whose results are the package's to write to; for a random
    generator of ours, one that draws such; for a ufunc of ours, NumPy's; anything else as it is."""
    kind = type(value)
    if kind is ufunc:
        return value.numpy
    if kind in CALLED or (
        not isinstance(value, type) and is_called(kind)  # type: ignore[arg-type]
    ):
        from .opened_objects import Callback

        return Callback(value, _in_host_copy)
    return drawn_from(value)


@functools.lru_cache(maxsize=256)
def is_called(kind: type) -> bool:
    """Whether objects of a class are called as functions of the program's: the class has a method
    for that which is written in Python and belongs to no package, or is one of our functions'."""
    methods = (vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base))
    method = next(methods, None)
    if (getattr(kind, "__module__", None) or "").partition(".")[0] == "clfuse":
        is_turned = hasattr(kind, "of_package") or issubclass(kind, Handle)
        return method is not None and not is_turned
    if type(method) is not types.FunctionType or hasattr(inspect.unwrap(method), "of_package"):
        return False
    file = method.__code__.co_filename
    return INSTALLED.isdisjoint(file.split(os.sep)) and "importlib" not in file


_core: Final = loading.load()
CALLED: Final = frozenset(
    (types.FunctionType, types.MethodType, functools.partial, *((_core.Front,) if _core else ()))
)
"""Kinds of functions that programs hand to packages."""

_in_host_copy: Final = deeply(host_copy)

in_shared_memory: Final = deeply(seen_by_numpy)
"""What compiled code gets that may write to it."""


def numbers(value: Any, depth: int = 3) -> Any:
    """NumPy's scalars for lazy ones, also in lists, tuples, dicts and slices down to `depth`:
    records of rows, columns by name. What has none in it is given as it is."""
    kind = type(value)
    if kind in handles.SCALARS:
        return host_scalar(value)
    if kind is slice:
        ends = value.start, value.stop, value.step
        return value if handles.SCALARS.isdisjoint(map(type, ends)) else slice(*map(numbers, ends))
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


_LISTS: Final = frozenset((list, tuple, dict, slice))

DEEPEST: Final = 8
"""Documents of json are looked into so far: a list that contains itself has to end."""


def _of_its_namespace(handle: Handle) -> Any:
    """What SciPy asks for namespace and device. Unless it takes arrays of other libraries for what
    they are (SCIPY_ARRAY_API), it works with NumPy's functions, which know the processor alone: an
    array of NumPy's. (Nor does the program keep to the standard then: `host_array.standard`.)"""
    api = sys.modules.get("scipy._lib._array_api")
    return handle if getattr(api, "SCIPY_ARRAY_API", False) else _NUMPYS


_NUMPYS: Final = np.empty(0)


in_host_view: Final = arrays(host_view)


def _with_numbers(value: Any) -> Any:
    """Numbers of NumPy's, and functions that give such."""
    made = called_back(value)
    return numbers(value) if made is value else made


def _column(value: Any) -> Any:
    """What columns are made of: pandas copies an array of NumPy's, since its release 3."""
    if type(value) is not handles.ARRAY:
        return numbers(value)
    release = getattr(sys.modules.get("pandas"), "__version__", "")
    return host_copy(value) if release[:2] in ("", "1.", "2.") else host_view(value)


_NUMBERS: Final[Mapping[str, Mapping[str, Turn]]] = {
    "json.encoder": {"JSONEncoder.iterencode": functools.partial(numbers, depth=DEEPEST)},
    **{
        f"pandas.core.{module}": dict.fromkeys(names.split(), numbers)
        for module, names in (
            ("frame", "DataFrame.__init__ DataFrame.__setitem__ DataFrame.insert"
             " DataFrame.from_records DataFrame.from_dict DataFrame.diff DataFrame.round"
             " DataFrame.nlargest DataFrame.nsmallest DataFrame.quantile"),
            ("series", "Series.__init__ Series.__setitem__ Series.diff Series.round"
             " Series.autocorr Series.repeat Series.quantile"),
            ("generic", "NDFrame.fillna NDFrame.replace NDFrame.clip NDFrame.where NDFrame.mask"
             " NDFrame.head NDFrame.tail NDFrame.rolling NDFrame.sample NDFrame.shift NDFrame.xs"
             " NDFrame.pct_change NDFrame.ewm NDFrame.expanding NDFrame.truncate"),
            ("indexing", "_LocationIndexer.__setitem__ _ScalarAccessIndexer.__setitem__"
             " _AtIndexer.__setitem__ _LocationIndexer.__getitem__ _AtIndexer.__getitem__"
             " _ScalarAccessIndexer.__getitem__"),
            ("indexes.base", "Index.__new__ Index.insert"),
            ("indexes.multi", "MultiIndex.from_arrays MultiIndex.from_product"
             " MultiIndex.from_tuples"),
            ("indexes.datetimes", "bdate_range date_range"),
            ("indexes.interval", "interval_range"),
            ("indexes.period", "period_range"),
            ("indexes.timedeltas", "timedelta_range"),
            ("arrays.categorical", "Categorical.__init__"),
            ("construction", "array"),
            ("methods.selectn", "SelectN.__init__"),
            ("reshape.concat", "concat"),
            ("tools.datetimes", "to_datetime"),
            ("tools.numeric", "to_numeric"),
            ("tools.timedeltas", "to_timedelta"),
        )
    },
    "pandas._libs.tslibs.timedeltas": {"Timedelta.__new__": numbers},
}  # fmt: skip

_CALLS: Final[Mapping[str, Mapping[str, Turn]]] = {
    "indexing": {"_LocationIndexer.__setitem__": _column},
    "indexes.base": {"Index.map": _with_numbers},
    "series": {
        **dict.fromkeys(("Series.apply", "Series.combine", "Series.map"), _with_numbers),
        "Series.__init__": _column,
        "Series._flex_method": in_host_view,
    },
    "frame": {
        "DataFrame.__init__": _column,
        **dict.fromkeys(("DataFrame.apply", "DataFrame.map"), _with_numbers),
        **dict.fromkeys(
            ("DataFrame._flex_arith_method", "DataFrame._flex_cmp_method", "DataFrame.set_index"),
            in_host_view,
        ),
    },
}
"""Methods of pandas' that make arrays of what a function of the program's gives, and those by which
`frame.add(x)` and its like take operands; what makes columns, also of nothing."""

DOORS: Final[Mapping[str, Mapping[str, Turn]]] = {
    # What is given as an index (a mask is no list of names) passes the first, what a Series or a
    # column is made of, to be written to later, the second; operands pass the third.
    "pandas.core.common": {
        "apply_if_callable": in_host_view, "maybe_iterable_to_list": arrays(host_copy),
    },
    "pandas.core.ops.common": {"item_from_zerodim": in_host_view},
    "pandas.core.arrays.numeric": {"NumericArray.__init__": arrays(host_copy)},
    "pandas.core.arrays.boolean": {"BooleanArray.__init__": arrays(host_copy)},
    "pandas.core.arrays.numpy_": {"NumpyExtensionArray.__init__": arrays(host_copy)},
    "pandas.core.algorithms": {
        "_ensure_arraylike": in_host_view, "isin": numbers, "take": in_host_view,
    },
    "pandas._libs.window.aggregations": dict.fromkeys(  # bounds that a user's indexer has made
        map("roll_{}".format, ("apply first kurt last max mean median_c min nunique quantile rank"
                               " skew sum var").split()), in_host_view,
    ),
    "pandas.io.formats.printing": {"pprint_thing": in_host_view},
    "pandas.core.groupby.grouper": {"get_grouper": in_host_view},
    "pandas.core.groupby.ops": {  # what a user's function has made
        "extract_result": numbers, "BaseGrouper.apply_groupwise": _with_numbers,
    },
    # Where a parameter is said to be of NumPy's class, of most functions and all estimators.
    "sklearn.utils._param_validation": {"_InstancesOf.is_satisfied_by": in_host_view},
    "astropy.convolution.kernels": {"CustomKernel.array": in_host_view},
    "astropy.utils.misc": {"JsonCustomEncoder.default": deeply(host_view)},
    # What is no array is text to be read to the one, and a file or a list to the other.
    "numpy._core.defchararray": {"array": in_host_view, "asarray": in_host_view},
    "numpy._core.records": {"array": in_host_view},
    "numpy.lib.recfunctions": {"merge_arrays": in_host_view},
    "numpy.testing._private.utils": dict.fromkeys(
        ("assert_equal", "assert_almost_equal"), in_host_view
    ),
    "numpy.ctypeslib": {"as_ctypes": arrays(seen_by_numpy)},
    "numpy.ctypeslib._ctypeslib": {"as_ctypes": arrays(seen_by_numpy)},  # there since NumPy 2.3
    "scipy.sparse.linalg._interface": {"aslinearoperator": in_host_view},
    # Compiled classes, whose methods cannot be replaced.
    "scipy.stats.sampling": dict.fromkeys(
        ("DiscreteAliasUrn", "DiscreteGuideTable", "NumericalInverseHermite",
         "NumericalInversePolynomial", "SimpleRatioUniforms", "TransformedDensityRejection"),
        in_shared_memory,
    ),
    "pykdtree.kdtree": {"KDTree": in_shared_memory},
    "scipy.spatial._ckdtree": {"cKDTree": in_shared_memory},
    "sklearn.neighbors._ball_tree": dict.fromkeys(
        ("BallTree", "BallTree32", "BallTree64"), in_shared_memory
    ),
    "sklearn.neighbors._kd_tree": dict.fromkeys(
        ("KDTree", "KDTree32", "KDTree64"), in_shared_memory
    ),
    "sklearn.tree._tree": dict.fromkeys(
        ("Tree.apply", "Tree.decision_path", "Tree.predict"), in_host_view
    ),
    "scipy._lib.array_api_compat.common._helpers": {
        "array_namespace": arrays(_of_its_namespace), "device": arrays(_of_its_namespace),
        "is_lazy_array": arrays(_of_its_namespace),
    },
    "matplotlib.axes._axes": {"Axes.errorbar": in_host_view},
    "matplotlib.cbook": dict.fromkeys(("_reshape_2D", "delete_masked_points"), in_host_view),
    "matplotlib.collections": {"PolyCollection.set_verts": in_host_view},
    "matplotlib.colorbar": {"Colorbar.set_alpha": in_host_view},
    "matplotlib.colorizer": {"Colorizer.to_rgba": in_host_view},
    "matplotlib.colors": dict.fromkeys(("_to_rgba_no_colorcycle", "to_rgba_array"), in_host_view),
    "matplotlib.markers": {"MarkerStyle._set_marker": in_host_view},
    "matplotlib.streamplot": {"streamplot": in_host_view},
    "matplotlib.tri._triinterpolate": {"TriInterpolator.__init__": in_shared_memory},
    "mpl_toolkits.mplot3d.art3d": {"Poly3DCollection.__init__": in_host_view},
    "xarray.core.dataset": {"Dataset.interp": deeply(host_view)},
    "xarray.core.utils": {"decode_numpy_dict_values": deeply(host_view)},
    "xarray.core.variable": {"Variable._broadcast_indexes": deeply(host_view)},
    "networkx.convert": {"to_networkx_graph": in_host_view},
    "sympy.core.sympify": {"_is_numpy_instance": in_host_view},
    "torch": dict.fromkeys(("from_numpy", "as_tensor", "asarray", "tensor"), in_shared_memory),
    "torch.utils.data._utils.collate": {"default_convert": in_shared_memory},
    "jax._src.numpy.indexing": {"eliminate_deprecated_list_indexing": deeply(host_view)},
    **_NUMBERS,
    **{
        f"pandas.core.{name}": {**_NUMBERS[f"pandas.core.{name}"], **methods}
        for name, methods in _CALLS.items()
    },
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


def _counted(name: str) -> Callable[[types.ModuleType], None]:
    """A patch: what the function of `counted_frames` of this name does."""

    def patch(module: types.ModuleType) -> None:
        from . import counted_frames  # few programs use both

        getattr(counted_frames, name)(module)

    return patch


def _keep_generators(random: Any) -> None:
    """Have `numpy.random.default_rng`, by which packages take what they are given, take ours."""
    plain = random.default_rng

    @functools.wraps(plain)
    def default_rng(seed: Any = None) -> Any:
        kind = type(seed)
        if kind.__module__.endswith("opened_objects") and isinstance(seed, random.Generator):
            return seed
        return sys.modules["clfuse"].random.default_rng(seed) if kind in GENERATORS else plain(seed)

    random.default_rng = default_rng


RECEIVERS: Final[Mapping[str, str]] = {
    "datetime": "timedelta date.fromtimestamp datetime.fromtimestamp datetime.utcfromtimestamp",
    "decimal": "Decimal Decimal.from_float",
    "numpy": "datetime64 dtype object_ timedelta64 void",
    "time": "ctime gmtime localtime sleep",
}
"""Module -> classes and functions in C that read the memory of a float, or of a number of NumPy's;
at most 16 classes and 12 functions."""


def _take_numbers(module: types.ModuleType) -> None:
    """Have the receivers of a module take lazy scalars, with the compiled part."""
    core = loading.load()
    if core is None:
        return
    for name in RECEIVERS[module.__name__].split():
        owner, _, last = name.rpartition(".")
        kind = getattr(module, owner, None) if owner else module
        receiver = vars(kind).get(last) if kind is not None else None
        if receiver is not None:
            core.let_take_numbers(receiver, numbers)


class _ByWrapped(dict[Any, Any]):
    """A table by function, in which one that is opened stands where the function itself does."""

    def __missing__(self, function: Any) -> Any:
        if not hasattr(function, "__wrapped__"):
            raise KeyError(function)
        return self[function.__wrapped__]


def _find_opened(api: Any) -> None:
    """Let SciPy's table of what its functions can do know those that are opened."""
    if hasattr(api, "xp_capabilities_table"):
        api.xp_capabilities_table = _ByWrapped(api.xp_capabilities_table)


PATCHES: Final[Mapping[str, Callable[[types.ModuleType], None]]] = {
    **dict.fromkeys(RECEIVERS, _take_numbers),
    "numpy.random": _keep_generators,
    "scipy._lib._array_api": _find_opened,
    "autoray.autoray": _foreign("register_with_autoray"),
    "casadi.casadi": _foreign("register_with_casadi"),
    "deap.creator": _foreign("enter_table", "class_replacers"),
    "jax._src.abstract_arrays": _foreign("register_with_jax"),
    "jax._src.interpreters.xla": _foreign("register_with_xla"),
    "xarray.core.formatting": _foreign("show_in_xarray"),
    "xarray.core.indexing": _foreign("index_in_xarray"),
    "formulaic.utils.context": _counted("count_in_formulaic"),
    "patsy.eval": _counted("count_in_patsy"),
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
         "polars", "pyarrow", "pygad", "pymoo", "qiskit", "seaborn", "shap",
         "sklearn", "sparse", "statsmodels", "tensornetwork", "uproot", "xgboost"),
        deeply(host_view),
    ),
    "scipy": deeply(host_view, called_back),
}
"""Package -> what its public functions, and the methods of its classes, get of an argument. More
are named by CLFUSE_NUMPY_PACKAGES."""

_OPERATORS: Final = "add sub mul truediv floordiv mod pow matmul and or xor".split()

IN_PYTHON: Final = frozenset(("scipy", "seaborn", "sklearn", "statsmodels"))
"""Packages of which only what is written in Python is opened, it calls what is compiled: methods,
and functions where programs find them. Private modules call each other's as they are."""

APART: Final = frozenset(("_lib", "_test_runner", "externals", "tests", "transform"))
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
