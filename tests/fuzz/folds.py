"""Draws steps that fold, scan, select and join: the half of `generate` that is more than one
operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz import program
from tests.fuzz.choices import Choices
from tests.fuzz.program import Step, Var
from tests.fuzz.reference import ORDERS, SCANS

ROW_REDUCTIONS = "sum sum max max min mean std any argmax".split()
REDUCTIONS = "sum prod min max any all mean var std argmin argmax count_nonzero".split()


class Folds(Choices):
    """Proposes such steps; `new` and `keep` are the generator's."""

    def draw_reduction(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        function = self.random.choice(REDUCTIONS)
        value, kwargs = np.asarray(self.value(name)), {}
        if self.random.random() < 0.75:
            arg = function.startswith("arg")
            kwargs["axis"] = self.axis(value.ndim) if arg else self.axes(value.ndim)
        if self.random.random() < 0.25:
            kwargs["keepdims"] = True
        if function in ("sum", "prod", "mean") and self.random.random() < 0.15:
            kwargs["dtype"] = self.dtype()
        if function in ("sum", "prod", "min", "max") and self.random.random() < 0.12:
            kwargs["initial"] = self.random.choice([0, 1, 3])
        if function in ("var", "std") and self.random.random() < 0.3:
            kwargs["ddof"] = 1
        if function in ("sum", "prod", "any", "all", "mean") and self.random.random() < 0.12:
            mask = self.name(lambda m: np.asarray(m).dtype == bool
                             and self._broadcasts(np.shape(m), value.shape))
            if mask is not None:
                kwargs["where"] = Var(mask)
        if function in ("sum", "max", "mean") and self.random.random() < 0.05:
            out = self.array(0)
            if out is not None:
                kwargs["out"] = Var(out)
        method = self.random.random() < 0.4 and function != "count_nonzero"
        return Step(program.METHOD if method else program.CALL, function, self.new(),
                    (Var(name),), kwargs)

    def draw_order(self) -> Step | None:
        """Sorts, sets and searches."""
        function = self.random.choice(ORDERS)
        kinds = "biufc" if function in ("sort", "argsort", "lexsort") else "biu"  # no -0.0 in sets

        def fits(value: Any) -> bool:
            return np.ndim(value) > 0 and np.asarray(value).dtype.kind in kinds

        def is_sorted(value: Any) -> bool:
            return fits(value) and np.ndim(value) == 1 and bool(np.all(value[1:] >= value[:-1]))

        name = self.name(is_sorted if function == "searchsorted" else fits)
        if name is None:
            return None
        first, shape = Var(name), np.shape(self.value(name))
        kwargs: dict[str, Any] = {}
        if function in ("sort", "argsort"):
            kwargs = {"axis": self.axis(len(shape)), "kind": "stable"}
        if function in ("sort", "argsort", "unique"):
            return Step(program.CALL, function, self.new(), (first,), kwargs)
        other = self.name(lambda v: fits(v) and (function != "lexsort" or np.shape(v) == shape))
        if other is None:
            return None
        if function == "lexsort":
            return Step(program.CALL, function, self.new(), ([first, Var(other)],))
        if function == "searchsorted":
            kwargs = {"side": self.random.choice(["left", "right"])}
        return Step(program.CALL, function, self.new(), (first, Var(other)), kwargs)

    def draw_scan(self) -> Step | None:
        name = self.name()
        if name is None:
            return None
        function = self.random.choice(["cumsum", "cumsum", *SCANS])
        kwargs: dict[str, Any] = {}
        ndim = np.ndim(self.value(name))
        if function.startswith("cum"):
            if self.random.random() < 0.75:
                kwargs["axis"] = self.axis(ndim)
            if self.random.random() < 0.15:
                kwargs["dtype"] = self.dtype()
            if self.random.random() < 0.4:
                return Step(program.METHOD, function, self.new(), (Var(name),), kwargs)
        elif self.random.random() < 0.8:
            kwargs["axis"] = self.axis(ndim)
        return Step(program.CALL, function, self.new(), (Var(name),), kwargs)

    def draw_rows(self) -> Step | None:
        """Reductions along one axis, with maps of their operand and results between and after."""
        name = self.array(1)
        if name is None:
            return None
        axis = self.random.randrange(np.ndim(self.value(name)))
        for _ in range(self.random.randint(1, 2)):
            (folded,), function = self.new("r"), self.random.choice(ROW_REDUCTIONS)
            if not self.keep(Step(program.METHOD, function, (folded,), (Var(name),),
                                  {"axis": axis, "keepdims": True})):
                return None
            args = (Var(name), Var(folded))
            (name,) = self.new()
            if not self.keep(Step(program.OPERATOR, self.random.choice("--*/<"), (name,),
                                  args if self.random.random() < 0.8 else args[::-1])):
                return None
        return Step(program.METHOD, self.random.choice(ROW_REDUCTIONS), self.new(), (Var(name),),
                    {"axis": axis})

    def draw_joined(self) -> Step | None:
        """A stencil: parts of an array and of what was joined of it, combined; maybe folded."""
        name = self.array(1)
        if name is None:
            return None
        shape = np.shape(self.value(name))
        total = name
        for _ in range(self.random.randint(1, 3)):
            joined = self._joined(name, shape)
            if joined is None:
                return None
            args = (Var(total), Var(joined))
            (total,) = self.new()
            if not self._makes(Step(program.OPERATOR, self.random.choice("++-*<"), (total,), args)):
                return None
        if self.random.random() < 0.3:  # the next round reads this one's result
            return self.draw_joined()
        if self.random.random() < 0.5:
            return Step(program.METHOD, self.random.choice(ROW_REDUCTIONS), self.new(),
                        (Var(total),), {"axis": self.axis(len(shape))})
        parts = [Var(total), Var(name)] if self.random.random() < 0.5 else [Var(name), Var(total)]
        kwargs = {"axis": self.axis(len(shape))}
        return Step(program.CALL, "concatenate", self.new(), (parts,), kwargs)

    def draw_joined_rows(self) -> Step | None:
        """Rows joined with an array, a map of all of them, a fold along any axis, and what is done
        with its result; mostly nobody holds what comes in between."""
        name = self.array(1)
        if name is None:
            return None
        before = set(self.reference.values)
        result = self._joined_and_folded(name)
        if result is None or self.random.random() < 0.9:
            for made in sorted(self.reference.values.keys() - before - {result}):
                self.keep(Step(program.DELETE, "", (), (Var(made),)))
        if result is None:
            return None
        return Step(program.OPERATOR, self.random.choice("+-*"), self.new(),
                    (Var(result), self.random.choice([1, 2, 0.5])))

    def _joined_and_folded(self, name: str) -> str | None:
        for _ in range(self.random.choice([1, 1, 2])):
            step = self._rows_joined(name)
            if step is None or not self._makes(step):
                return None
            (name,) = step.targets
        if self.random.random() < 0.3:
            args = (Var(name), self.partner(name))
            (made,) = self.new()
            if self._makes(Step(program.OPERATOR, self.random.choice("++-*<"), (made,), args)):
                name = made
        ndim = np.ndim(self.value(name))
        function = self.random.choice(ROW_REDUCTIONS)
        kwargs: dict[str, Any] = {
            "axis": self.axis(ndim) if function.startswith("arg") else self.axes(ndim)}
        if self.random.random() < 0.25:
            kwargs["keepdims"] = True
        (folded,) = self.new("r")
        if not self._makes(Step(program.METHOD, function, (folded,), (Var(name),), kwargs)):
            return None
        for _ in range(self.random.randint(0, 3)):
            if self.random.random() < 0.2 and np.ndim(self.value(folded)):
                step = self._rows_joined(folded)
            else:
                other = self.number() if self.random.random() < 0.6 else self.partner(folded)
                args = (Var(folded), other)
                step = Step(program.OPERATOR, self.random.choice("+-*/"), self.new(),
                            args if self.random.random() < 0.7 else args[::-1])
            if step is not None and self._makes(step):
                (folded,) = step.targets
        return folded

    def _rows_joined(self, name: str) -> Step | None:
        """An array with more rows: of its own, of what is the same for all of them, or new ones."""
        shape = np.shape(self.value(name))
        axis = self.random.randrange(len(shape))
        function = self.random.choice("""
            concatenate concatenate concatenate vstack hstack dstack column_stack stack pad pad
            insert append roll
        """.split())
        kwargs: dict[str, Any] = {"axis": axis}
        if function == "pad":
            mode = self.random.choice("constant edge wrap mean maximum minimum".split())
            widths: Any = self.random.choice([0, 1, 2, 3])
            if self.random.random() < 0.7:
                widths = [(self.random.randint(0, 3), self.random.randint(0, 3))
                          if at == axis else (0, 0) for at in range(len(shape))]
            kwargs = {"mode": mode}
            if mode == "constant":
                kwargs["constant_values"] = self.random.choice([0, 1])
            return Step(program.CALL, function, self.new(), (Var(name), widths), kwargs)
        if function == "roll":
            shift = self.random.choice([-2, -1, 1, 3])
            return Step(program.CALL, function, self.new(), (Var(name), shift), kwargs)
        row = self._row(name, axis)
        if row is None:
            return None
        if function == "insert":
            place = self.random.randint(0, shape[axis])
            values = Var(row) if self.random.random() < 0.7 else self.random.choice([0, 1, 2])
            if self.random.random() < 0.3:
                place = [place, self.random.randint(0, shape[axis])]
            return Step(program.CALL, function, self.new(), (Var(name), place, values), kwargs)
        if function == "append":
            if self.random.random() < 0.2:
                kwargs = {}
            return Step(program.CALL, function, self.new(), (Var(name), Var(row)), kwargs)
        parts = [Var(name), Var(row)] if self.random.random() < 0.5 else [Var(row), Var(name)]
        if function == "stack":
            parts = [Var(name)] * self.random.randint(2, 3)
            kwargs = {"axis": self.axis(len(shape) + 1)}
        elif function != "concatenate":
            kwargs = {}
        elif self.random.random() < 0.4:
            parts.append(Var(row))
        return Step(program.CALL, function, self.new(), (parts,), kwargs)

    def _row(self, name: str, axis: int) -> str | None:
        """One row of a variable along an axis, or a fold of all of them: of length 1 there."""
        shape = np.shape(self.value(name))
        row, lead = self.new("n")[0], (slice(None),) * axis
        if self.random.random() < 0.4 or not shape[axis]:
            function = self.random.choice("sum max min".split())
            kwargs = {"axis": axis, "keepdims": True}
            return row if self._makes(
                Step(program.METHOD, function, (row,), (Var(name),), kwargs)) else None
        place = self.random.randrange(shape[axis])
        if not self._makes(Step(program.GETITEM, "", (row,), (Var(name), (*lead, place)))):
            return None
        if self.random.random() < 0.5:
            args = (Var(row), self.number())
            (row,) = self.new("n")
            if not self._makes(Step(program.OPERATOR, self.random.choice("+*-"), (row,), args)):
                return None
        whole = row
        (row,) = self.new("n")
        step = Step(program.GETITEM, "", (row,), (Var(whole), (*lead, None)))
        return row if self._makes(step) else None

    def _joined(self, name: str, shape: tuple[int, ...]) -> str | None:
        """An array of this shape whose elements come from several places of a variable."""
        axis = self.random.randrange(len(shape))
        (joined,) = self.new()
        if self.random.random() < 0.5:
            shift = self.random.choice([-3, -2, -1, 1, 1, 2, shape[axis] // 2])
            step = Step(program.CALL, "roll", (joined,), (Var(name), shift), {"axis": axis})
            return joined if self._makes(step) else None
        before, after = self.random.choice([(1, 0), (0, 1), (1, 1), (2, 2), (3, 1)])
        if self.random.random() < 0.7:
            mode = self.random.choice("constant constant edge reflect symmetric wrap".split())
            widths = [(before, after)] * len(shape) if self.random.random() < 0.5 else [
                (before, after) if at == axis else (0, 0) for at in range(len(shape))]
            kwargs: dict[str, Any] = {"mode": mode}
            if mode == "constant":
                kwargs["constant_values"] = self.random.choice([0, 0, 1, 2])
            step = Step(program.CALL, "pad", (joined,), (Var(name), widths), kwargs)
        else:
            lead = (slice(None),) * axis
            pieces = []
            for cut in (slice(0, before), slice(shape[axis] - after, None)):
                (piece,) = self.new()
                if not self._makes(Step(program.GETITEM, "", (piece,), (Var(name), (*lead, cut)))):
                    return None
                pieces.append(Var(piece))
            pieces.insert(self.random.randint(0, 2), Var(name))
            (joined,) = self.new()
            step = Step(program.CALL, "concatenate", (joined,), (pieces,), {"axis": axis})
        if not self._makes(step):
            return None
        wider = np.shape(self.value(joined))
        key = []
        for extent, wanted in zip(wider, shape, strict=True):
            first = self.random.randint(0, extent - wanted)
            key.append(slice(first, first + wanted))
        (part,) = self.new()
        return part if self._makes(Step(program.GETITEM, "", (part,), (Var(joined), tuple(key)))) \
            else None

    def _makes(self, step: Step) -> bool:
        """Take the step if possible; whether its variables exist now (it may have raised)."""
        return self.keep(step) and all(name in self.reference.values for name in step.targets)

    def draw_mask(self) -> Step | None:
        """What a mask selects, or an assignment through it, of old elements or of new ones."""
        name = self.array(1)
        if name is None:
            return None
        shape = np.shape(self.value(name))
        mask = self.name(lambda v: isinstance(v, np.ndarray) and v.dtype == bool and v.ndim > 0
                         and v.shape == shape[:v.ndim])
        if mask is None or mask == name or self.random.random() < 0.3:
            (mask,) = self.new("m")
            if not self.keep(Step(program.OPERATOR, self.random.choice(("<", ">=", "!=")), (mask,),
                                  (Var(name), self.number()))):
                return None
        if self.value(mask).ndim == 1 and len(self.value(mask)) > 1 and self.random.random() < 0.25:
            # Parts of both, so that a mask is counted beside one that is longer.
            part = (slice(self.random.randrange(2), None, self.random.choice([1, 2])),)
            parts = [*self.new("p"), *self.new("m")]
            for target, whole in zip(parts, (name, mask), strict=True):
                if not self.keep(Step(program.GETITEM, "", (target,), (Var(whole), part))):
                    return None
            name, mask = parts
        kind = self.random.random()
        if kind < 0.15:
            function = self.random.choice(["flatnonzero", "argwhere"])
            return Step(program.CALL, function, self.new(), (Var(mask),))
        if kind < 0.4:
            value = self.value(name)
            (count,) = value[self.value(mask)].shape[:1] if self.value(mask).ndim else (0,)
            other = self.name(lambda v: self._broadcasts(
                np.shape(v), (count, *value.shape[self.value(mask).ndim:])))
            source = self.number() if other is None or kind < 0.2 else Var(other)
            return Step(program.SETITEM, "", (), (Var(name), (Var(mask),), source))
        (chosen,) = self.new("s")
        selected = Step(program.GETITEM, "", (chosen,), (Var(name), (Var(mask),)))
        if kind < 0.7:
            return selected
        # What `name[mask] op= other` does.
        if not self.keep(selected):
            return None
        (made,) = self.new()
        if not self.keep(Step(program.OPERATOR, self.random.choice("+-*"), (made,),
                              (Var(chosen), self.partner(chosen)))):
            return None
        return Step(program.SETITEM, "", (), (Var(name), (Var(mask),), Var(made)))

    def draw_random(self) -> Step | None:
        what = self.random.choice(["float64", "float64", "float32", "int64"])
        key, position = self.random.randrange(2**64), self.random.choice([0, 1, 7, 2**40])
        return Step(program.DRAW, what, self.new(), (key, position, self.shape()))

    def draw_rolls(self) -> Step | None:
        """Neighbours across the border, joined with what they are neighbours of."""
        name = self.array(1)
        if name is None:
            return None
        axis = self.random.randrange(np.ndim(self.value(name)))
        total = name
        for _ in range(self.random.randint(1, 3)):
            (moved,) = self.new("n")
            if not self.keep(Step(program.CALL, "roll", (moved,),
                                  (Var(name), self.random.choice([-2, -1, 1, 3])),
                                  {"axis": axis})):
                return None
            args = (Var(total), Var(moved))
            (total,) = self.new()
            if not self.keep(Step(program.OPERATOR, self.random.choice("++-*"), (total,), args)):
                return None
        if self.random.random() < 0.4:
            return Step(program.SETITEM, "", (), (Var(name), (Ellipsis,), Var(total)))
        return Step(program.METHOD, self.random.choice(ROW_REDUCTIONS), self.new(), (Var(total),),
                    {"axis": axis})

    def draw_pairs(self) -> Step | None:
        """All pairs of two arrays, folded along one axis and then another: a fold of folds."""
        one = self.name(lambda v: isinstance(v, np.ndarray) and v.ndim > 0 and v.shape[0] <= 20)
        if one is None:
            return None
        shape = self.value(one).shape
        other = self.name(lambda v: isinstance(v, np.ndarray) and v.ndim == len(shape)
                          and v.shape[1:] == shape[1:])
        (spread,) = self.new("q")
        if not self.keep(Step(program.GETITEM, "", (spread,), (Var(one), (slice(None), None)))):
            return None
        (pairs,) = self.new()
        if not self.keep(Step(program.OPERATOR, self.random.choice("--*<"), (pairs,),
                              (Var(spread), Var(other or one)))):
            return None
        if self.random.random() < 0.5:
            (square,) = self.new()
            if not self.keep(Step(program.OPERATOR, "*", (square,), (Var(pairs), Var(pairs)))):
                return None
            pairs = square
        (folded,) = self.new("r")
        if not self.keep(Step(program.METHOD, self.random.choice("sum sum max any".split()),
                              (folded,), (Var(pairs),), {"axis": -1})):
            return None
        if np.ndim(self.reference.values.get(folded, 0)) == 0:
            return None
        return Step(program.METHOD, self.random.choice(ROW_REDUCTIONS), self.new(), (Var(folded),),
                    {"axis": self.axis(np.ndim(self.value(folded)))})
