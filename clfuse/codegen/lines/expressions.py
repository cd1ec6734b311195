"""One element-wise step as an OpenCL C expression, at any vector width.

Registers hold numbers in their own type (half as float) and bools as masks: an int at width 1, a
signed integer vector of 0 and -1 otherwise, with lanes as wide as what was compared.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from clfuse.dataclass import frozen, mutable
from clfuse.dtypes import (
    mask_type,
    memory_type,
    name_of,
    register_nbytes,
    register_type,
    type_class,
)
from clfuse.ir.nodes import Op
from clfuse.ir.scalar_functions import Function
from clfuse.ops.row import Ufunc
from clfuse.ops.table import UFUNCS
from clfuse.target.traits import DeviceTraits

from . import complexes


def vector(scalar: str, width: int) -> str:
    """The OpenCL C type of `width` lanes."""
    return scalar if width == 1 else f"{scalar}{width}"


@frozen
class Register:
    """A named value: its text, dtype, the bytes of a mask's lanes, and whether it is one scalar."""

    text: str
    dtype: np.dtype
    lane_nbytes: int = 4
    uniform: bool = False


@mutable
class Preamble:
    """What must stand above a kernel: library files and instantiated macros, each once."""

    libraries: dict[str, None] = field(default_factory=dict)
    defines: dict[str, None] = field(default_factory=dict)


class Expressions:
    """Writes expressions of one width, collecting what they need in `preamble`."""

    def __init__(self, width: int, traits: DeviceTraits, preamble: Preamble) -> None:
        self.width = width
        self.traits = traits
        self.preamble = preamble

    def in_memory(self, dtype: np.dtype) -> str:
        """The type of elements side by side in global memory."""
        if dtype.kind == "c":
            return complexes.vector_of(dtype, self.width)
        return vector(memory_type(dtype), self.width)

    def loaded(
        self,
        dtype: np.dtype,
        place: str,
        *,
        whole: bool = True,
        aligned: bool = False,
        space: str = "__global",
    ) -> str:
        """The vector whose first element in memory (of that address space) is at `place`, wherever
        that is; `whole` allows one load of all its bytes, `aligned` says that it lies at a multiple
        of its size."""
        if aligned:
            return f"(*({space} const {self.in_memory(dtype)} *)({place}))"
        if whole and self.traits.whole_vectors:
            return f"(*({space} const {self._anywhere(dtype)} *)({place}))"
        if dtype.kind != "c" or self.width == 1:
            return f"vload{self.width}(0, {place})"
        part = complexes.part_type(dtype)
        return f"vload{2 * self.width}(0, ({space} const {part} *)({place}))"

    def stored(
        self,
        dtype: np.dtype,
        text: str,
        place: str,
        *,
        whole: bool = True,
        aligned: bool = False,
        space: str = "__global",
    ) -> str:
        """A statement that stores a vector to memory of that address space, from `place` on; whole
        and aligned as in `loaded`."""
        if aligned:
            return f"*({space} {self.in_memory(dtype)} *)({place}) = {text};"
        if whole and self.traits.whole_vectors:
            return f"*({space} {self._anywhere(dtype)} *)({place}) = {text};"
        if dtype.kind != "c" or self.width == 1:
            return f"vstore{self.width}({text}, 0, {place});"
        part = complexes.part_type(dtype)
        return f"vstore{2 * self.width}({text}, 0, ({space} {part} *)({place}));"

    def _anywhere(self, dtype: np.dtype) -> str:
        """The vector's type that may lie at the address of any element."""
        kind = self.in_memory(dtype)
        scalar = complexes.part_type(dtype) if dtype.kind == "c" else memory_type(dtype)
        name = f"{kind}_anywhere"
        aligned = f"__attribute__((aligned(sizeof({scalar}))))"
        self.preamble.defines[f"typedef {kind} {name} {aligned};"] = None
        return name

    def type_of(self, dtype: np.dtype, lane_nbytes: int = 4) -> str:
        """The type of a register of `dtype` at this width."""
        if dtype.kind == "b":
            return "int" if self.width == 1 else vector(mask_type(lane_nbytes), self.width)
        if dtype.kind == "c":
            return complexes.vector_of(dtype, self.width)
        return vector(register_type(dtype), self.width)

    def number(self, register: Register) -> str:
        """A numeric register as text at this width."""
        if register.uniform and self.width > 1:
            times = self.width if register.dtype.kind == "c" else 1
            return f"({self.type_of(register.dtype)})({', '.join([register.text] * times)})"
        return register.text

    def mask(self, register: Register, lane_nbytes: int) -> str:
        """A bool register as a mask with lanes of `lane_nbytes` bytes."""
        if self.width == 1:
            return register.text
        wanted = vector(mask_type(lane_nbytes), self.width)
        if register.uniform:
            return f"({wanted})(-({register.text} != 0))"
        if register.lane_nbytes == lane_nbytes:
            return register.text
        return f"convert_{wanted}({register.text})"

    def lanes_of(self, registers: list[Register]) -> int:
        """The lane size that suits these masks: that of the widest which is not a scalar."""
        return max([r.lane_nbytes for r in registers if not r.uniform], default=4)

    def cast(self, register: Register, dtype: np.dtype, lane_nbytes: int = 4) -> str:
        """The register converted to `dtype` (bool: to a mask of `lane_nbytes`)."""
        source = register.dtype
        if dtype.kind == "b":
            if source.kind == "b":
                return self.mask(register, lane_nbytes)
            lanes = Register(self.truth(register), np.dtype(np.bool_), lanes_like(source), False)
            return self.mask(lanes, lane_nbytes)
        if source == dtype:
            return self.number(register)
        target = self.type_of(dtype)
        if dtype.kind == "c" and source.kind != "c" and self.width > 1:
            return self._interleaved(dtype, self.cast(register, _real_part(dtype)))
        if source.kind == "b":
            if self.width == 1 or register.uniform:
                text = f"({register.text} != 0)"
                if dtype.kind == "c":
                    return f"({target})({text}, 0)"
                return f"({target})({text})"
            return f"convert_{target}(-({register.text}))"
        if source.kind == "c":
            if dtype.kind == "c":
                return f"convert_{target}({self.number(register)})"
            real = f"({self.number(register)}).even"
            return self._real_cast(real, _real_part(source), dtype)
        if dtype.kind == "c":
            real = self._real_cast(self.number(register), source, _real_part(dtype))
            return f"({target})({real}, 0)"
        return self._real_cast(self.number(register), source, dtype)

    def _interleaved(self, dtype: np.dtype, real: str) -> str:
        """Real parts as complex numbers."""
        part = vector(complexes.part_type(dtype), self.width)
        target = self.type_of(dtype)
        self.preamble.libraries["complexes.cl"] = None
        self.preamble.defines[f"DEFINE_INTERLEAVED({target}, {part})"] = None
        return f"interleaved_{target}({real}, ({part})(0))"

    def truth(self, register: Register) -> str:
        """The mask of lanes that are not zero, in lanes of the register's own size."""
        if register.dtype.kind == "b":
            return self.mask(register, register.lane_nbytes)
        if register.dtype.kind == "c":
            text = self.number(register)
            return f"(({text}).even != 0 || ({text}).odd != 0)"
        return f"({self.number(register)} != ({self.type_of(register.dtype)})(0))"

    def _real_cast(self, text: str, source: np.dtype, dtype: np.dtype) -> str:
        """Real number to real number as a C cast on x86-64 does it."""
        target = self.type_of(dtype)
        if dtype.char == "e":
            if source.char == "d":
                return self.half(self._round_to_odd(text))
            return self.half(text if source.char in "ef" else f"convert_{target}({text})")
        if source.kind == "f" and dtype.kind in "iu":
            if name_of(dtype) == "uint64":
                return self._float_to_ulong(text, source)
            through = "long" if name_of(dtype) in ("int64", "uint32") else "int"
            converted = self._truncated(text, register_type(source), through)
            return (
                converted
                if name_of(dtype) == f"int{64 if through == 'long' else 32}"
                else (f"convert_{target}({converted})")
            )
        if register_type(source) == register_type(dtype):
            return text
        return f"convert_{target}({text})"

    def _truncated(self, text: str, scalar: str, through: str) -> str:
        """A float or double as an int or long; NaN and what does not fit is the least of them, as
        x86-64's instructions have it. Other devices' give their nearest integer, and 0 for NaN."""
        kind = vector(through, self.width)
        converted = f"convert_{kind}({text})"
        if not self.traits.saturating_casts:
            return converted
        suffix = "f" if scalar == "float" else ""
        limit, least = ("0x1p31", "INT_MIN") if through == "int" else ("0x1p63", "LONG_MIN")
        fits = f"fabs({text}) < ({vector(scalar, self.width)})({limit}{suffix})"
        if self.width > 1 and (scalar == "double") != (through == "long"):
            fits = f"convert_{kind}({fits})"
        return f"({fits} ? {converted} : ({kind})({least}))"

    def _float_to_ulong(self, text: str, source: np.dtype) -> str:
        """Values past 2**63 are shifted, negative ones wrap: what compilers emit on x86-64."""
        signed, scalar = vector("long", self.width), register_type(source)
        if self.traits.fp64 and scalar == "float" and not self.traits.saturating_casts:
            # Doubles have lanes of a long's size; the difference of floats is exact, too.
            text, scalar = f"convert_{vector('double', self.width)}({text})", "double"
        limit = f"({vector(scalar, self.width)})({'0x1p63' + 'f' * (scalar == 'float')})"
        low = self._truncated(text, scalar, "long")
        high = f"({self._truncated(f'({text} - {limit})', scalar, 'long')} ^ ({signed})(LONG_MIN))"
        past = f"{text} >= {limit}"
        if self.width > 1 and scalar == "float":
            past = f"convert_{signed}({past})"
        return f"as_{vector('ulong', self.width)}({past} ? {high} : {low})"

    def _round_to_odd(self, text: str) -> str:
        """A double as the float from which rounding to half gives what one rounding would."""
        types = [vector(scalar, self.width) for scalar in ("float", "double", "int", "long")]
        self.preamble.libraries["narrow.cl"] = None
        self.preamble.defines[f"DEFINE_ROUND_TO_ODD({', '.join(types)})"] = None
        return f"round_to_odd_{types[0]}({text})"

    def from_half(self, text: str) -> str:
        """The bits of halves, as loaded, as floats."""
        return f"from_half_{self._define_half('DEFINE_FROM_HALF')}({text})"

    def to_half(self, text: str) -> str:
        """Floats that halves can hold, as bits to be stored."""
        return f"to_half_{self._define_half('DEFINE_TO_HALF')}({text})"

    def _define_half(self, macro: str) -> str:
        types = [vector(scalar, self.width) for scalar in ("float", "int", "uint", "ushort")]
        self.preamble.libraries["narrow.cl"] = None
        self.preamble.defines[f"{macro}({', '.join(types)})"] = None
        return types[0]

    def half(self, text: str) -> str:
        """A float rounded to what a half can hold."""
        kind = vector("float", self.width)
        self.preamble.libraries["half.cl"] = None
        types = [vector(scalar, self.width) for scalar in ("float", "int", "uint")]
        self.preamble.defines[f"DEFINE_ROUND_TO_HALF({', '.join(types)})"] = None
        return f"round_to_half_{kind}({text})"

    def step(self, op: Op, operands: list[Register], name: str) -> tuple[str, Register]:
        """The expression of `op` and the register that it will be stored in, called `name`.

        Long programs repeat few kinds of step, so each is written once with stand-ins for its
        operands' names.
        """
        key = (
            op,
            self.width,
            tuple([(r.dtype.char, r.lane_nbytes, r.uniform) for r in operands]),
            id(self.traits.expressions),
            self.traits.schedule,
            self.traits.fp64,
            self.traits.saturating_casts,
        )
        known = _steps.get(key)
        if known is None:
            stand_ins = [
                Register(_stand_in(number), r.dtype, r.lane_nbytes, r.uniform)
                for number, r in enumerate(operands)
            ]
            writer = Expressions(self.width, self.traits, Preamble())
            text, register = writer._step(op, stand_ins, "")
            if len(_steps) >= _STEPS_KEPT:
                _steps.clear()
            known = _steps[key] = (
                text, register.lane_nbytes, writer.preamble, self.traits.expressions,
            )
        text, lane_nbytes, preamble, _ = known
        self.preamble.libraries.update(preamble.libraries)
        self.preamble.defines.update(preamble.defines)
        for number, register in enumerate(operands):
            text = text.replace(_stand_in(number), register.text)
        assert op.dtype is not None
        return text, Register(name, op.dtype, lane_nbytes)

    def _step(self, op: Op, operands: list[Register], name: str) -> tuple[str, Register]:
        if op.row is None:
            return self._conversion(op, operands[0], name)
        if isinstance(op.row, Function):
            return self._call(op.row, operands), Register(name, op.row.dtype)
        dtypes = list(op.input_dtypes)
        masks = [register for register in operands if register.dtype.kind == "b"]
        leading = dtypes[op.row.typed_by]
        lanes = self.lanes_of(masks) if leading.kind == "b" else lanes_like(leading)
        texts = []
        for register, dtype in zip(operands, dtypes, strict=True):
            if dtype.kind == "b":
                texts.append(_grouped(self.cast(register, dtype, lanes)))
            else:
                texts.append(_grouped(self.cast(register, dtype)))
        text = self.formatted(op.name, dtypes, texts, op.dtype, lanes)
        assert op.dtype is not None
        if op.dtype.char == "e" and op.name not in _EXACT_ON_HALF:
            text = self.half(text)
        return text, Register(name, op.dtype, lanes)

    def _call(self, function: Function, operands: list[Register]) -> str:
        """A call of a function that a user wrote."""
        texts = [
            self.cast(register, dtype)
            for register, dtype in zip(operands, function.dtypes, strict=True)
        ]
        name = function.name
        if function.preamble:
            self.preamble.defines[function.preamble] = None
        self.preamble.defines[function.text] = None
        if self.width > 1:
            self.preamble.defines[function.lanes(self.width)] = None
            name = f"{name}_v{self.width}"
        text = f"{name}({', '.join(texts)})"
        return self.half(text) if function.dtype.char == "e" else text

    def _conversion(self, op: Op, register: Register, name: str) -> tuple[str, Register]:
        dtype = op.dtype
        assert dtype is not None
        if op.name == "bitcast":
            return self._bitcast(register, dtype), Register(name, dtype)
        lanes = register.lane_nbytes
        if register.dtype.kind != "b":
            lanes = lanes_like(register.dtype)
        return self.cast(register, dtype, lanes), Register(name, dtype, lanes)

    def _bitcast(self, register: Register, dtype: np.dtype) -> str:
        source = register.dtype
        bits: np.dtype = source
        if source.kind == "b":
            bits = np.dtype(np.uint8)
            text = self.cast(register, bits)
        elif source.char == "e":
            bits = np.dtype(np.uint16)
            text = self.to_half(self.number(register))
        else:
            text = self.number(register)
        if dtype.kind == "b":
            return self.cast(Register(text, bits), dtype, register_nbytes(bits))
        if dtype.char == "e":
            if bits.char != "H":
                text = f"as_{self.type_of(np.dtype(np.uint16))}({text})"
            return self.from_half(text)
        return text if dtype == bits else f"as_{self.type_of(dtype)}({text})"

    def formatted(
        self,
        name: str,
        dtypes: list[np.dtype],
        texts: list[str],
        output: np.dtype | None,
        lane_nbytes: int,
    ) -> str:
        """The row `name` with these operand texts, which have the loop's dtypes already."""
        row = UFUNCS[name]
        if self.width > 1 and any(d.kind == "c" for d in (*dtypes, output) if d is not None):
            return self._of_complexes(row, dtypes, texts, output, lane_nbytes)
        names = [name_of(dtype) for dtype in dtypes]
        key = row.key(names)
        if key is None:
            raise AssertionError(f"{name} has no OpenCL C for {names}")
        leading = dtypes[row.typed_by]
        scalar = register_type(leading)
        size = lane_nbytes if leading.kind == "b" else register_nbytes(leading)
        if leading.kind == "b" and self.width > 1:
            scalar = mask_type(lane_nbytes)
        if leading.kind == "c":
            size = leading.itemsize // 2
        signed = mask_type(size)
        fields = {
            "T": self.type_of(leading, lane_nbytes),
            "S": scalar,
            "W": "" if self.width == 1 else str(self.width),
            "I": vector(signed, self.width),
            "U": vector("u" + signed, self.width),
            "O": self.type_of(output if output is not None else leading, lane_nbytes),
            "R": register_type(_real_part(leading)) if leading.kind == "c" else scalar,
        }
        expression = self.traits.expressions.get((name, name_of(leading))) or row.expressions[key]
        usual = row.define.get(key) or row.define.get(type_class(leading))
        define = self._lanes_define(row, leading, fields) or usual
        if define or leading.kind == "c":
            for library in row.libraries:
                if library != "complex.cl" or leading.kind == "c":
                    self.preamble.libraries[library] = None
        if define:
            for line in define.format(*texts, **fields).splitlines():
                self.preamble.defines[line.strip()] = None
        return f"({expression.format(*texts, **fields)})"

    def _lanes_define(self, row: Ufunc, leading: np.dtype, fields: dict[str, str]) -> str:
        """What must stand above vectors on CPUs instead of the row's other text; empty where
        nothing is. Adds what it may use to `fields`."""
        define = row.define_lanes.get(name_of(leading), "")
        size = leading.itemsize
        if not define or self.width == 1 or self.traits.schedule != "cpu":
            return ""
        if size > 2 and not self.traits.fp64:
            return ""
        fields["F"] = vector("double" if size > 2 else "float", self.width)
        fields["P"] = vector("uint" if leading.kind == "u" else "int", self.width)
        return define

    def _of_complexes(
        self,
        row: Ufunc,
        dtypes: list[np.dtype],
        texts: list[str],
        output: np.dtype | None,
        lane_nbytes: int,
    ) -> str:
        """As `formatted`, for vectors of complex numbers."""
        expression = row.expressions.get("complexes")
        define = row.define.get("complexes", "")
        result = dtypes[row.typed_by] if output is None else output
        numbers = next(dtype for dtype in (*dtypes, result) if dtype.kind == "c")
        kind, part = complexes.vector_of(numbers, self.width), complexes.part_type(numbers)
        each = f"each_complex_{row.name}"
        if expression is None or row.each_number:
            single = Expressions(1, self.traits, self.preamble)
            operands = [f"{{{position}}}" for position in range(len(dtypes))]
            text = single.formatted(row.name, dtypes, operands, output, lane_nbytes)
            function = complexes.by_numbers(each, dtypes, result, text, self.width)
            self.preamble.defines[function] = None
        if expression is None:
            first = self.type_of(dtypes[0], lane_nbytes)
            return f"{each}_{first}({', '.join(texts)})"
        mask = mask_type(numbers.itemsize // 2)
        fields = {
            "T": kind,
            "V": vector(part, self.width),
            "R": part,
            "I": vector(mask, self.width),
            "M": vector(mask, 2 * self.width),
            "W": str(self.width),
        }
        for library in (*row.libraries, "complexes.cl"):
            self.preamble.libraries[library] = None
        if define:
            for line in define.format(**fields).splitlines():
                self.preamble.defines[line.strip()] = None
        return f"({expression.format(*texts, **fields)})"


def _stand_in(number: int) -> str:
    """What stands in text for an operand's name; none is part of another."""
    return f"Operand{number}X"


_STEPS_KEPT = 10_000
_steps: dict[Any, tuple[str, int, Preamble, Any]] = {}
"""Kind of step -> (text, lane bytes of the result, what it needs, the mapping in the key)."""

_EXACT_ON_HALF = frozenset(
    [
        "negative",
        "positive",
        "absolute",
        "fabs",
        "sign",
        "rint",
        "floor",
        "ceil",
        "trunc",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "where",
        "clip",
        "copysign",
        "nextafter",
        "spacing",
        "conjugate",
    ]
)
"""Rows whose result is a half already when their operands are."""


def lanes_like(dtype: np.dtype) -> int:
    """Bytes of the lanes of a mask made from `dtype`: of complex numbers, those of a part."""
    return dtype.itemsize // 2 if dtype.kind == "c" else register_nbytes(dtype)


def _real_part(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype.char == "F" else np.dtype(np.float64)


def _grouped(text: str) -> str:
    """`text` in parentheses unless it is one word."""
    return text if text.replace("_", "").isalnum() else f"({text})"
