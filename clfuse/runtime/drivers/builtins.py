"""Declarations of the built-in functions that a source names, in place of a header of all of them.

Some compilers otherwise read that header before every program (`DeviceTraits.builtins_read`).
Others read one of the functions of sub-groups (`DeviceTraits.subgroups_read`), which few programs
need.

Of the 15,000 lines of Clang's ``opencl-c.h`` a kernel needs twenty. Without the rest a new kernel
takes the front end of PoCL 3.1 26 ms instead of 128, one that it has on disk 6.5 instead of 24.

A function is declared for every type that it takes, as the header does it: with an overload left
out a call could choose another one. Only vectors wider than any in the source are left out, to
which nothing converts by itself. A source that calls what no row here has is built with the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

__all__ = ["declarations", "names_subgroups"]

INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
SIGNED = INTEGERS[::2]
FLOATS = ("float", "double")
ALL = (*INTEGERS, *FLOATS)

WIDTHS = (1, 2, 3, 4, 8, 16)
"""Elements of a vector; 1 is the scalar."""

PURE, READS, PLAIN = "CLFUSE_PURE", "CLFUSE_READS", "CLFUSE_PLAIN"
"""What the compiler may assume of a function: a result by its arguments alone; by memory, too;
nothing."""

NAMES_KEPT = 4096
"""Identifiers of sources whose declarations (of most: none) are kept. A kernel has some hundred,
most of them every other kernel's, too."""

ATTRIBUTES = f"""\
#define {PLAIN} __attribute__((overloadable))
#define {PURE} {PLAIN} __attribute__((const))
#define {READS} {PLAIN} __attribute__((pure))
"""

_SIZES = {"char": 8, "short": 16, "int": 32, "long": 64, "float": 32, "double": 64}
_OF_SIZE = {8: "char", 16: "short", 32: "int", 64: "long"}

SIGNATURES: Sequence[tuple[str, Sequence[str], Sequence[str], str]] = (
    # names; types of g; signatures, result first; what the compiler may assume
    #     g  the type and width at hand          s  its scalar, beside wider arguments
    #     u  the unsigned integer of its size    i  the signed one      m  a comparison's result
    #     k  int, as wide                        K  int
    #     w  the integer of twice the size       *  a pointer, in each address space
    #     v  void               z  size_t        ^  a pointer to constants in global memory
    (
        "acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi degrees erf"
        " erfc exp exp10 exp2 expm1 fabs floor lgamma log log10 log1p log2 logb radians rint round"
        " rsqrt sign sin sinh sinpi sqrt tan tanh tanpi tgamma trunc",
        FLOATS,
        ("gg",),
        PURE,
    ),
    (
        "atan2 atan2pi copysign fdim fmod hypot maxmag minmag nextafter pow powr remainder",
        FLOATS,
        ("ggg",),
        PURE,
    ),
    ("fmax fmin", FLOATS, ("ggg", "ggs"), PURE),
    ("fma mad", FLOATS, ("gggg",), PURE),
    ("ldexp", FLOATS, ("ggk", "ggK"), PURE),
    ("pown rootn", FLOATS, ("ggk",), PURE),
    ("ilogb", FLOATS, ("kg",), PURE),
    ("nan", FLOATS, ("gu",), PURE),
    ("mix", FLOATS, ("gggg", "gggs"), PURE),
    ("step", FLOATS, ("ggg", "gsg"), PURE),
    ("smoothstep", FLOATS, ("gggg", "gssg"), PURE),
    ("fract modf sincos", FLOATS, ("gg*g",), PLAIN),
    ("frexp lgamma_r", FLOATS, ("gg*k",), PLAIN),
    ("remquo", FLOATS, ("ggg*k",), PLAIN),
    (
        " ".join(
            f"{kind}_{name}"
            for kind in ("half", "native")
            for name in "cos exp exp10 exp2 log log10 log2 recip rsqrt sin sqrt tan".split()
        ),
        ("float",),
        ("gg",),
        PURE,
    ),
    ("half_divide half_powr native_divide native_powr", ("float",), ("ggg",), PURE),
    ("max min", ALL, ("ggg", "ggs"), PURE),
    ("clamp", ALL, ("gggg", "ggss"), PURE),
    ("abs", INTEGERS, ("ug",), PURE),
    ("abs_diff", INTEGERS, ("ugg",), PURE),
    ("add_sat hadd mul_hi rhadd rotate sub_sat", INTEGERS, ("ggg",), PURE),
    ("mad_hi mad_sat", INTEGERS, ("gggg",), PURE),
    ("clz popcount", INTEGERS, ("gg",), PURE),
    ("mul24", ("int", "uint"), ("ggg",), PURE),
    ("mad24", ("int", "uint"), ("gggg",), PURE),
    ("upsample", INTEGERS[:6], ("wgu",), PURE),
    ("isfinite isinf isnan isnormal signbit", FLOATS, ("mg",), PURE),
    (
        "isequal isgreater isgreaterequal isless islessequal islessgreater isnotequal isordered"
        " isunordered",
        FLOATS,
        ("mgg",),
        PURE,
    ),
    ("all any", SIGNED, ("Kg",), PURE),
    ("bitselect", ALL, ("gggg",), PURE),
    ("select", ALL, ("gggi", "gggu"), PURE),
    ("prefetch", ALL, ("v^gz",), PLAIN),
)

PLAIN_SIGNATURES = {
    **{
        name: f"size_t {PURE} {name}(uint);"
        for name in (
            "get_global_id get_global_offset get_global_size get_group_id get_local_id"
            " get_local_size get_num_groups"
        ).split()
    },
    "get_work_dim": f"uint {PURE} get_work_dim(void);",
    "barrier": f"void {PLAIN} __attribute__((convergent)) barrier(cl_mem_fence_flags);",
    **{
        name: f"void {PLAIN} {name}(cl_mem_fence_flags);"
        for name in ("mem_fence", "read_mem_fence", "write_mem_fence")
    },
}
"""Functions of one signature."""

ATOMICS = {
    **dict.fromkeys(("inc", "dec"), ""),
    **dict.fromkeys(("add", "sub", "xchg", "min", "max", "and", "or", "xor"), "t"),
    "cmpxchg": "tt",
}
"""``atomic_`` functions, and ``atom_`` of extensions -> what they take beside the pointer."""

_BY_NAME = {name: row for row in SIGNATURES for name in row[0].split()}

_ROUNDED = r"(?:_rt[ezpn])?"
_CONVERT = re.compile(rf"convert_({'|'.join(ALL)})(2|3|4|8|16|)(?:_sat)?{_ROUNDED}")
_LOAD_STORE = re.compile(rf"v(load|store)(?:(a?_half)(2|3|4|8|16|)|(2|3|4|8|16))({_ROUNDED})")
_ATOMIC = re.compile(rf"atom(?:ic)?_({'|'.join(ATOMICS)})")

_LEFT_OUT = re.compile(
    r"async_work_group\w*|atomic_(?:compare|exchange|fetch|flag|init|load|store|work_item)\w*|cross"
    r"|distance|dot|fast_\w+|get_\w+|intel_\w+|length|normalize|read_image\w*|shuffle2?"
    r"|sub_group_\w+|wait_group_events|work_group_\w+|write_image\w*"
)
"""What else the header may declare: a program that calls it needs the header."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WIDTH = re.compile(
    r"(?:(?:convert_)?u?(?:char|short|int|long|float|double|half)|v(?:load|store)(?:a?_half)?)"
    r"(2|3|4|8|16)(?:_\w+)?"
)
_PASTED_WIDTH = re.compile(r"##(2|3|4|8|16)\b")
_PASTED = "convert_##"
_PASTED_NAME = re.compile(r"\b(?:v(?:load|store)\w*|native_|half_|atom(?:ic)?_|is)[ \t]*##")
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+\w+\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE
)
_PASTE = re.compile(r"(\w+)[ \t]*##[ \t]*(\w+)")


def _makes_names(source: str) -> bool:
    """Whether macros may put names of functions together that stand nowhere in the source."""
    if "##" not in source:
        return False
    if _PASTED_NAME.search(source):
        return True
    for parameters, body in _MACRO.findall(source):
        if "##" not in body:
            continue
        given = {name.strip() for name in parameters.split(",")}
        if any(left in given and right in given for left, right in _PASTE.findall(body)):
            return True
    return False


_SUBGROUPS = re.compile(r"sub_?group|cl_intel_|float_atomics_enable|#[ \t]*include")
"""What a source holds that may need the header of sub-groups: its functions, macros that it defines
or asks for, and texts that are not seen. What macros put together is refused without the header,
and built with it."""


def names_subgroups(source: str) -> bool:
    """Whether a source may name what a header of sub-groups declares or defines.

    Examples
    --------
    >>> names_subgroups("y[0] = sub_group_reduce_add(x)"), names_subgroups("y[0] = log2(x)")
    (True, False)
    """
    return _SUBGROUPS.search(source) is not None


def declarations(source: str) -> str | None:
    """Return declarations of the built-in functions that a source names, None if it needs others.

    source: OpenCL C.

    Examples
    --------
    >>> print(declarations("y[0] = log2(x)").splitlines()[-1])
    double CLFUSE_PURE log2(double);
    """
    if _makes_names(source):
        return None
    names = set(_IDENTIFIER.findall(source))
    widths = [match[1] for name in names if (match := _WIDTH.fullmatch(name))]
    widest = max(map(int, [*widths, *_PASTED_WIDTH.findall(source)]), default=1)
    if _PASTED in source:
        names |= {f"convert_{name}" for name in names if name.startswith(ALL)}
    texts = [ATTRIBUTES]
    for name in sorted(names):
        text = _declared(name, widest)
        if not text and _LEFT_OUT.fullmatch(name) and re.search(rf"\b{name}\s*\(", source):
            return None
        texts.append(text)
    return "".join(texts)


@lru_cache(maxsize=NAMES_KEPT)
def _declared(name: str, widest: int) -> str:
    """Return every overload of a function for vectors up to a width; nothing for other names."""
    if name in PLAIN_SIGNATURES:
        lines: Iterator[str] = iter([PLAIN_SIGNATURES[name]])
    elif name in _BY_NAME:
        lines = _overloads(name, widest)
    elif match := _CONVERT.fullmatch(name):
        result = match[1] + match[2]
        lines = (f"{result} {PURE} {name}({source}{match[2]});" for source in ALL)
    elif match := _LOAD_STORE.fullmatch(name):
        lines = _loads_and_stores(name, match)
    elif match := _ATOMIC.fullmatch(name):
        lines = _atomics(name, ATOMICS[match[1]])
    else:
        return ""
    return "".join(f"{line}\n" for line in lines)


def _overloads(name: str, widest: int) -> Iterator[str]:
    _, types, signatures, assumed = _BY_NAME[name]
    for base in types:
        for width in WIDTHS:
            if width > widest:
                break
            for signature in signatures:
                # For scalars the two are one.
                if width == 1 and ("s" in signature or "K" in signature[1:]):
                    continue
                result, *arguments = _spelled(signature, base, width)
                declaration = f"{result} {assumed} {name}({', '.join(arguments)});"
                if "*" in signature:
                    yield from _in_spaces(declaration)
                else:
                    yield declaration


def _spelled(signature: str, base: str, width: int) -> list[str]:
    """Return the types of a signature; a pointer's holds ``*`` where its address space goes."""
    suffix = "" if width == 1 else str(width)
    unsigned = base.startswith("u")
    size = _SIZES[base[1:] if unsigned else base]
    signed = _OF_SIZE[size]
    types = {
        "g": base + suffix,
        "s": base,
        "u": "u" + signed + suffix,
        "i": signed + suffix,
        "m": ("int" if width == 1 else signed) + suffix,
        "k": "int" + suffix,
        "K": "int",
        "v": "void",
        "z": "size_t",
    }
    if "w" in signature:
        types["w"] = ("u" if unsigned else "") + _OF_SIZE[2 * size] + suffix
    pointers = {"": "{}", "*": "*{} *", "^": "const __global {} *"}
    return [
        pointers[pointer].format(types[letter])
        for pointer, letter in re.findall(r"([*^]?)(\w)", signature)
    ]


def _in_spaces(declaration: str, *, constant: bool = False) -> Iterator[str]:
    """Declare for pointers into each address space: OpenCL C has one name for three of them where
    the macro is defined."""
    if constant:
        yield declaration.replace("*", "__constant ", 1)
    yield "#ifdef __opencl_c_generic_address_space"
    yield declaration.replace("*", "", 1)
    yield "#else"
    for space in ("__global", "__local", "__private"):
        yield declaration.replace("*", f"{space} ", 1)
    yield "#endif"


def _loads_and_stores(name: str, match: re.Match[str]) -> Iterator[str]:
    is_load = match[1] == "load"
    width = match[3] or match[4] or ""
    rounding = match[5]
    if match[2]:
        if rounding and is_load:
            return
        pairs = [("float", "half")] if is_load else [("float", "half"), ("double", "half")]
    elif rounding:
        return
    else:
        pairs = [(base, base) for base in ALL]
    for base, stored in pairs:
        value = base + width
        if is_load:
            yield from _in_spaces(
                f"{value} {READS} {name}(size_t, const *{stored} *);", constant=True
            )
        else:
            yield from _in_spaces(f"void {PLAIN} {name}({value}, size_t, *{stored} *);")


def _atomics(name: str, others: str) -> Iterator[str]:
    types: tuple[str, ...] = ("int", "uint")
    if name.startswith("atom_"):
        types += ("long", "ulong")
    elif name == "atomic_xchg":
        types += ("float",)
    for base in types:
        for space in ("__global", "__local"):
            arguments = [f"volatile {space} {base} *", *[base for _ in others]]
            yield f"{base} {PLAIN} {name}({', '.join(arguments)});"
