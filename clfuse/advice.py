"""Advice: what to do about errors whose own words, which are NumPy's, do not say it.

Each rule knows an error by its class and words, looks at the line of the program that it came from,
and says what was meant and what to write. `clfuse.tracebacks` shows that below the error. The
mistakes are those that users of array libraries report most (guide/mistakes.md).
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from .errors import JitError, is_missing_name
from .user_frames import COMPILED, OWN_FOLDERS

__all__ = ["RULES", "advice"]

Rule = Callable[[str, str], str]
"""Of the error's words and the program's line: the advice, or nothing."""


def advice(error: BaseException) -> str:
    """What to do about an error; empty where no rule knows it."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 (of a class of the program's: Python shows it without words)
        return ""
    for name, (kinds, pattern, rule) in RULES.items():
        if isinstance(error, kinds) and re.search(pattern, words):
            if name == "name" and not is_missing_name(error):
                continue
            if name == "attribute" and not _is_ours(getattr(error, "obj", None)):
                continue
            if text := rule(words, _line_of(error)):
                return text
    return ""


def _is_ours(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("clfuse", "numpy")


def _line_of(error: BaseException) -> str:
    """The program's line that an error came from: the innermost that is not in our packages."""
    found = ""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith((*OWN_FOLDERS, COMPILED)):
            line = linecache.getline(
                code.co_filename, traceback.tb_lineno, traceback.tb_frame.f_globals
            )
            found = line.strip() or found
        traceback = traceback.tb_next
    return found


def _tree(line: str) -> ast.Module | None:
    """A line's syntax, where it is a statement, or the head of one."""
    for text in (line, f"{line} pass", f"if 1:\n {line}", f"async def f():\n {line}"):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            continue
    return None


def _calls(line: str) -> set[str]:
    """Names of the functions that a line calls: ``np.zeros(3)`` calls ``zeros``."""
    tree = _tree(line)
    if tree is None:
        return set(re.findall(r"(\w+)\s*\(", line))
    functions = [each.func for each in ast.walk(tree) if isinstance(each, ast.Call)]
    return {
        each.attr if isinstance(each, ast.Attribute) else each.id
        for each in functions
        if isinstance(each, ast.Attribute | ast.Name)
    }


def _chained(line: str) -> str:
    """The comparison of three values that a line has, ``0 < x < 1``."""
    tree = _tree(line)
    for each in ast.walk(tree) if tree is not None else ():
        if isinstance(each, ast.Compare) and len(each.ops) > 1:
            return ast.unparse(each)
    return ""


# -- NumPy's errors --------------------------------------------------------------------------------


def truth(words: str, line: str) -> str:
    if re.search(r"\b(and|or|not)\b", line):
        return (
            "`and`, `or` and `not` ask for one truth value: write `&`, `|` and `~` for arrays, with"
            " parentheses around comparisons: `(a > 0) & (a < 1)`."
        )
    if chained := _chained(line):
        return (
            f"`{chained}` asks for one truth value, between its two halves. For arrays write"
            " `(a < x) & (x < b)`, with the parentheses."
        )
    if re.search(r"\bin\b", line) and not line.startswith("for "):
        return "To look for a value in arrays, write `np.isin(value, array).any()`."
    return (
        "An array has a truth value for every element. Whether one or all of them hold:"
        " `condition.any()`, `condition.all()`. To choose element by element:"
        " `np.where(condition, a, b)`. To ask whether there is an array: `x is None`, `x.size`."
    )


def in_place(words: str, line: str) -> str:
    kept = re.search(r"to dtype\('(\w+)'\)", words)
    made = re.search(r"from dtype\('(\w+)'\)", words)
    if kept is None or made is None:
        return ""
    written = re.match(r"(.+?)\s*(//|\*\*|<<|>>|@|[-+*/%&|^])=\s*(.+)", line)
    plain = f"`{written[1]} = {written[1]} {written[2]} {written[3]}`" if written else "`x = x / 2`"
    return (
        f"The result is {made[1]}, and the array that it would be written into is {kept[1]}. For an"
        f" array of {made[1]}: {plain}, or make the array with `dtype={made[1]}`. For whole numbers"
        " use `//`, or `.astype` on the operand."
    )


def broadcast(words: str, line: str) -> str:
    shapes = [
        tuple([int(each) for each in re.findall(r"\d+", text)])
        for text in re.findall(r"\(([\d, ]*)\)", words)
    ]
    if len(shapes) != 2:
        return "Shapes are compared from the last axis on; there each must be equal, or 1."
    for large, small in (shapes, shapes[::-1]):
        if small and len(small) < len(large) and large[: len(small)] == small:
            more = ", ".join([":"] * len(small) + ["None"] * (len(large) - len(small)))
            return (
                f"Shapes are compared from the last axis on. {small} belongs to the first axes of"
                f" {large}: index it with `[{more}]`, or keep the axis where it was folded:"
                " `x.mean(axis=1, keepdims=True)`."
            )
    if shapes[0] == shapes[1][::-1]:
        return f"{shapes[0]} and {shapes[1]}: one of them lies the other way round; write `.T`."
    return (
        f"Shapes are compared from the last axis on: {shapes[0]} and {shapes[1]} differ there."
        " `x[:, None]` gives an array another axis, `np.multiply.outer(a, b)` pairs all elements."
    )


def ragged(words: str, line: str) -> str:
    return (
        "The lists have unequal lengths, and arrays have none: pad them"
        " (`[row + [0] * (longest - len(row)) for row in rows]`), join them"
        " (`np.concatenate`) and keep where each begins, or keep a list of arrays."
    )


def float_index(words: str, line: str) -> str:
    if "/" in line and "//" not in line:
        return "`/` gives a float, also of whole numbers: write `//` for an index."
    return (
        "An index is a whole number or an array of them: convert with `int(x)`, `.astype(int)`, or"
        " round before."
    )


def shape_in_pieces(words: str, line: str) -> str:
    names = _calls(line) & {"zeros", "ones", "empty", "full"}
    name = names.pop() if names else "zeros"
    return f"The shape is one argument, a tuple: `np.{name}((3, 4))`; the second one is a dtype."


def unhashable(words: str, line: str) -> str:
    return (
        "An array can change, so it is no key of a dictionary, no element of a set, and no argument"
        " of a cached function. Use what stays: `x.tobytes()`, `tuple(x.tolist())`, for one number"
        " `x.item()`; the distinct values of an array are `np.unique(x)`."
    )


def text_in_numbers(words: str, line: str) -> str:
    return (
        "One operand is text. Numbers that were read as text become numbers with"
        " `.astype(float)`; a list that mixes both is an array of text."
    )


OF_OTHERS: Final = {
    "at": "Arrays can be written to: `x[i] = v`, `x[i] += v`; where indices repeat"
          " `np.add.at(x, i, v)`.",
    "block_until_ready": "The wait for the device is `clfuse.evaluate(x)`.",
    "clone": "It is `x.copy()`.",
    "compute": "There is no graph to be started by hand: a look at a value computes it, and"
               " `clfuse.evaluate(x)` does at once.",
    "cpu": "The values on the host are `x.get()`, or `clfuse.asnumpy(x)`.",
    "cuda": "Arrays are on the device already; another one is `with clfuse.device(spec):`.",
    "detach": "There are no gradients; the values on the host are `x.get()`.",
    "numpy": "The values on the host are `x.get()`, or `clfuse.asnumpy(x)`.",
    "permute": "It is `x.transpose(...)`.",
    "persist": "It is `clfuse.evaluate(x)`.",
    "to": "Another dtype is `x.astype(...)`, another device `with clfuse.device(spec):`.",
    "unsqueeze": "It is `np.expand_dims(x, axis)`, or `x[None]`.",
}  # fmt: skip
"""Attributes of arrays of other libraries (CuPy, Dask, JAX, PyTorch) -> what does it here."""


def attribute(words: str, line: str) -> str:
    found = re.search(r"attribute '(\w+)'", words)
    return OF_OTHERS.get(found[1], "") if found else ""


OF_OTHER_MODULES: Final = {
    "ascupy": "It is `clfuse.asarray(x)`.",
    "block_until_ready": "The wait for the device is `clfuse.evaluate(x)`.",
    "cat": "It is `np.concatenate((a, b))`.",
    "compute": "There is no graph to be started by hand: a look at a value computes it, and"
               " `clfuse.evaluate(x)` does at once.",
    "cuda": "A device is chosen by `with clfuse.device(spec):`, the wait for it is"
            " `clfuse.synchronize()`, its memory is in `clfuse.stats()`; streams and a memory pool"
            " need no care.",
    "device_get": "It is `x.get()`, or `clfuse.asnumpy(x)`.",
    "device_put": "It is `clfuse.asarray(x)`; on another device in `with clfuse.device(spec):`.",
    "from_array": "It is `clfuse.asarray(x)`; what is larger than the device is computed in tiles,"
                  " without chunks.",
    "from_numpy": "It is `clfuse.asarray(x)`.",
    "fuse": "Operations fuse by themselves; a function that is called often is recorded once with"
            " `@clfuse.jit`.",
    "get_array_module": "All functions take arrays of NumPy's and of clfuse's: `import clfuse as"
                        " np` is enough.",
    "grad": "There are no gradients.",
    "lax": "Loops and conditions of Python's do: operations fuse across rounds, and"
           " `np.where(condition, a, b)` chooses.",
    "tensor": "It is `clfuse.array(x)`.",
    "value_and_grad": "There are no gradients.",
    "vmap": "Functions of whole arrays take more axes as they are: give them the array with one"
            " axis in front, and `axis=` where they fold.",
}  # fmt: skip
"""Names in other libraries' modules (CuPy, Dask, JAX, PyTorch) -> what does it here."""


def name_of_module(words: str, line: str) -> str:
    found = re.search(r"^module 'clfuse' has no attribute '(\w+)'", words)
    return OF_OTHER_MODULES.get(found[1], "") if found else ""


def several_arrays(words: str, line: str) -> str:
    joining = _calls(line) & {"concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"}
    if not joining:
        return ""
    name = min(joining)
    return f"The arrays are one argument, a tuple or a list: `np.{name}((a, b))`."


def precedence(words: str, line: str) -> str:
    if not re.search(r"[<>]|[=!]=", line):
        return "`&`, `|` and `^` take whole numbers and truth values: compare first, `(x > 0) & m`."
    return (
        "`&` and `|` bind more tightly than comparisons: `a > 0 & a < 1` means"
        " `a > (0 & a) < 1`. Write `(a > 0) & (a < 1)`."
    )


def to_json(words: str, line: str) -> str:
    return (
        "JSON knows Python's numbers and lists: `x.tolist()` makes these of an array and of a"
        " single value. `json.dumps(..., default=lambda x: x.tolist())` does it everywhere."
    )


def inner_extents(words: str, line: str) -> str:
    return (
        "A product of matrices needs the columns of the first and the rows of the second to be as"
        " many: `a @ b.T` or `a.T @ b` for two of the same shape, `a * b` element by element."
    )


def read_only(words: str, line: str) -> str:
    return (
        "What `numpy.asarray(x)` makes of a clfuse array is a read-only snapshot, and so is what"
        " `np.broadcast_to` gives. Write to `x` itself, or to a copy of its own: `x.get()`."
    )


IN_C: Final = (
    r"must be numpy\.ndarray, not (\w+\.)?ndarray|numpy array expected|is not a numpy array"
    r"|expected (a )?(numpy\.ndarray|np\.ndarray|numpy array)|Expected Ptr<cv::"
    r"|to numpy\.ndarray|incompatible (function|constructor) arguments[^~]*numpy\.ndarray"
)
"""What C functions say that look into the memory of NumPy's own class."""


def in_c(words: str, line: str) -> str:
    return (
        "This function is written in C for NumPy's own class. Where the array is clfuse's, give it"
        " clfuse.asnumpy(x)."
    )


def one_number(words: str, line: str) -> str:
    if re.search(r"\bmath\.", line):
        return (
            "Functions of `math` take one number: those of NumPy take arrays (`np.sqrt(x)` for"
            " `math.sqrt(x)`)."
        )
    return (
        "`float(x)` and `int(x)` are of one number: choose one (`x[0]`, `x.sum()`), convert all of"
        " them (`x.astype(int)`), or make a list (`x.tolist()`)."
    )


# -- jit -------------------------------------------------------------------------------------------

SELECTING: Final = frozenset(
    "unique nonzero flatnonzero argwhere extract compress setdiff1d intersect1d union1d".split()
)

COUNTING: Final = frozenset(
    "range arange linspace zeros ones empty full eye reshape repeat tile".split()
)

CONVERTING: Final = frozenset("float int complex bool item tolist".split())


def jit_look(words: str, line: str) -> str:
    calls = _calls(line)
    if "print" in calls:
        return "To print it, return it from the function, and print what the call gives."
    if calls & COUNTING:
        return (
            "How often a loop goes round, and how large an array is, must be known when the"
            " function is traced: pass it as a Python number (`int(n)` in the call), not as an"
            " array. Each number has a trace of its own."
        )
    if calls & SELECTING or re.search(r"\[[^\]]*(<|>|==|!=|\bmask\b)[^\]]*\]", line):
        return (
            "How many elements it selects depends on values, so that no shape is known. Keep the"
            " shape: `np.where(mask, x, 0)`, for sums `np.sum(x, where=mask)`, to write"
            " `x = np.where(mask, y, x)`; or select outside of the function."
        )
    if re.search(r"^(el)?if\b|^while\b|^assert\b|\bif\b.*\belse\b|\b(and|or|not)\b", line):
        return (
            "A condition on values chooses once, when the function is traced. Choose element by"
            " element: `np.where(condition, a, b)`; or test what the call returns, outside."
        )
    if calls & CONVERTING:
        return (
            "Leave the number an array without axes, no `float` or `.item()`: all operations take"
            " it. Convert what the call returns."
        )
    return (
        "A function that is not clfuse's asks for the values: take clfuse's of the same name, or"
        " call it outside of the function."
    )


# -- all of them -----------------------------------------------------------------------------------

Kinds = type[BaseException] | tuple[type[BaseException], ...]

RULES: Final[dict[str, tuple[Kinds, str, Rule]]] = {
    "truth": (ValueError, r"^The truth value of an array", truth),
    "in place": (TypeError, r"^Cannot cast ufunc '\w+' output from", in_place),
    "broadcast": (
        ValueError,
        r"^(operands could not be broadcast together with (remapped )?shapes"
        r"|could not broadcast input array from shape|shape mismatch: objects cannot be broadcast)",
        broadcast,
    ),
    "ragged": (ValueError, r"inhomogeneous shape", ragged),
    "float index": (IndexError, r"^only integers, slices \(`:`\), ellipsis", float_index),
    "shape in pieces": (TypeError, r"^Cannot interpret '\d+' as a data type", shape_in_pieces),
    "unhashable": (TypeError, r"^unhashable type: '([\w.]*\.)?ndarray'", unhashable),
    "text": (
        TypeError, r"did not contain a loop with signature matching types .*(StrDType|'<U)",
        text_in_numbers,
    ),
    "name": (AttributeError, r"^module 'clfuse' has no attribute", name_of_module),
    "several arrays": (
        TypeError, r"^only integer scalar arrays can be converted to a scalar index",
        several_arrays,
    ),
    "precedence": (
        TypeError, r"^ufunc 'bitwise_(and|or|xor)' not supported for the input types", precedence,
    ),
    "JSON": (
        TypeError, r"^Object of type (ndarray|float\d+|u?int\d+|bool|complex\d+) is not JSON",
        to_json,
    ),
    "inner extents": (
        ValueError, r"^matmul: Input operand 1 has a mismatch in its core dimension",
        inner_extents,
    ),
    "attribute": (AttributeError, r"object has no attribute '\w+'", attribute),
    "read-only": (ValueError, r"^assignment destination is read-only", read_only),
    "in C": (TypeError, IN_C, in_c),
    "one number": (
        TypeError,
        r"^only (0-dimensional|length-1|size-1) arrays can be converted to Python scalars",
        one_number,
    ),
    "jit": (JitError, r"^a value is looked at", jit_look),
}  # fmt: skip
"""The class of an error, its words, and what gives the advice."""
