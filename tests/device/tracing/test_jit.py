"""`clfuse.jit`: every call of a traced function does what the function would have done."""

from __future__ import annotations

import functools
import gc
import sysconfig
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support.agreement import difference_of_form, host, problem_bitwise, same_bits
from tests.support.hostile import hostile, ordinary

pytestmark = pytest.mark.clfuse_only

CALLS = 3  # one that traces and two that replay


def assert_same(actual: Any, expected: Any) -> None:
    """The same containers, plain values, and arrays bit by bit."""
    if isinstance(expected, list | tuple):
        assert type(actual) is type(expected)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert_same(list(actual.values()), list(expected.values()))
    elif isinstance(expected, np.ndarray | np.generic):
        assert difference_of_form(actual, expected) is None
        assert np.all(same_bits(host(actual), np.asarray(expected)))
        assert isinstance(expected, np.generic) is isinstance(actual, np.generic)
    else:
        assert actual == expected
        assert type(actual) is type(expected)


def counted(xp: ModuleType, call: Callable[[], Any]) -> tuple[int, int]:
    """Traces and replays of a call."""
    before = xp.stats()
    call()
    after = xp.stats()
    return (after["jit_traces"] - before["jit_traces"],
            after["jit_replays"] - before["jit_replays"])


class Pair(NamedTuple):
    first: Any
    second: Any


def arithmetic(m: Any, x: Any, y: Any, scale: Any = 2) -> Any:
    total = (x * scale + y).astype(x.dtype)
    return total, m.where(total > y, total, y), total[::-2], m.add.reduce(total[:3])


def several_results(m: Any, x: Any, y: Any) -> Any:
    z = x.reshape(3, -1)
    w = z[:, ::-1].T + 1
    return {"view": w.T, "same": x, "sum": z.sum(axis=0), "pair": Pair(x[1:], 3),
            "list": [y, y * 2, "text", None, 2.5], "constant": m.arange(4), "zero": m.zeros((2, 3)),
            "scalar": x[1], "whole": z.sum()}


def writes(m: Any, x: Any, y: Any) -> Any:
    x += 1
    x[1:4] = y[:3]
    view = x[::2]
    view *= 2
    m.add(x, y, out=y)
    return view, x


def swaps(m: Any, x: Any, y: Any) -> None:
    old = x.copy()
    x[:] = y
    y[:] = old


def of_one(m: Any, x: Any, factor: Any) -> Any:
    return x * factor, factor + 1, factor


def matrices(m: Any, x: Any, y: Any) -> Any:
    square = x[:9].reshape(3, 3)
    return square @ square.T, m.concatenate([x, y])[2:-2], square.max(axis=1).argmax()


def both(xp: ModuleType, function: Any, make: Callable[[Any], tuple[Any, ...]]) -> None:
    """Call a function and its jitted form several times on arrays that live on; all must agree."""
    jitted = xp.jit(functools.partial(function, xp))
    ours, theirs = make(xp), make(np)
    for call in range(CALLS):
        expected = function(np, *theirs)
        assert_same(jitted(*ours), expected)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
        if call == 0:
            assert counted(xp, lambda: jitted(*make(xp))) == (0, 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64",
                                   "complex128"])
def test_results_are_numpys_for_hostile_values(xp: ModuleType, dtype: str) -> None:
    values = hostile(dtype)
    both(xp, arithmetic, lambda m: (m.asarray(values), m.asarray(values[::-1].copy())))
    both(xp, arithmetic, lambda m: (m.asarray(values)[::-1], m.asarray(values), True))


@pytest.mark.parametrize("function", [several_results, writes, swaps, matrices])
def test_calls_do_what_the_function_does(xp: ModuleType, function: Any) -> None:
    data = ordinary(3, 12, "float64"), ordinary(4, 12, "float64")
    both(xp, function, lambda m: (m.array(data[0]), m.array(data[1])))
    both(xp, function, lambda m: (m.array(data[0]), m.array(np.repeat(data[1], 2))[::-2]))


def test_arguments_that_share_storage_share_it_in_the_replay(xp: ModuleType) -> None:
    data = ordinary(5, 12, "float32")

    def views(m: Any) -> tuple[Any, ...]:
        x = m.array(data)
        return x[2:8], x[:6], x

    def shift(m: Any, target: Any, source: Any, whole: Any) -> Any:
        target += source
        source -= 1
        return whole * 2, whole[3:5]

    def itself(m: Any, x: Any, y: Any) -> Any:
        x *= 3
        return y + 1, x

    both(xp, shift, views)
    both(xp, itself, lambda m: (m.arange(5.0),) * 2)
    jitted = xp.jit(functools.partial(itself, xp))
    x, y = xp.arange(5.0), xp.arange(5.0)
    jitted(x, y)  # not the same signature as the next
    assert_same(jitted(x, x), itself(np, *(np.arange(5.0) * 3,) * 2))
    made = jitted(x, y)
    assert made[1] is x


def test_scalars_and_arrays_of_no_axes(xp: ModuleType) -> None:
    for factor in (np.float32(1.5), np.float64(-0.0), np.int8(3), np.complex64(1 + 2j),
                   np.bool_(True), np.float16(2.5)):
        both(xp, of_one, lambda m, value=factor: (m.arange(4, dtype="float32"), value))
        both(xp, of_one, lambda m, value=factor: (m.arange(4, dtype="float32"), m.asarray(value)))
    both(xp, of_one, lambda m: (m.arange(4, dtype="int8"), m.arange(3.0).sum()))
    both(xp, of_one, lambda m: (m.asarray(2.5), m.asarray([3])))
    jitted = xp.jit(functools.partial(of_one, xp))
    x = xp.arange(4.0)
    jitted(x, np.float64(1))
    values = (np.float64(2), np.float64(np.nan), xp.asarray(3.0).sum())
    assert counted(xp, lambda: [jitted(x, value) for value in values[:2]]) == (0, 2)
    assert_same(jitted(x, values[1]), of_one(np, np.arange(4.0), values[1]))
    assert_same(jitted(x, values[2] * 2), of_one(np, np.arange(4.0), np.float64(6)))


def test_empty_arrays_and_functions_without_work(xp: ModuleType) -> None:
    both(xp, lambda m, x: (x * 2, x.sum(), x[:0]), lambda m: (m.zeros((0, 3)),))
    both(xp, lambda m, x: None, lambda m: (m.zeros(3),))
    both(xp, lambda m, x: (x, x.copy(), x.T), lambda m: (m.arange(6.0).reshape(2, 3),))
    assert host(xp.jit(lambda: xp.arange(3) * 2)()).tolist() == [0, 2, 4]


def test_the_signature(xp: ModuleType) -> None:
    @xp.jit
    def f(x: Any, *more: Any, n: Any = 2, **named: Any) -> Any:
        """Documented."""
        parts = [part * n for part in more] + [named[key] + n for key in sorted(named)]
        return x[:2] * n, parts

    def plain(x: Any, *more: Any, n: Any = 2, **named: Any) -> Any:
        return f.__wrapped__(x, *more, n=n, **named)

    def traces(*args: Any, **kwargs: Any) -> int:
        expected = plain(*[host(a) if hasattr(a, "get") else a for a in args], **{
            name: host(a) if hasattr(a, "get") else a for name, a in kwargs.items()})
        made = []
        number = counted(xp, lambda: made.append(f(*args, **kwargs)))[0]
        assert_same(made[0], expected)
        return number

    x = xp.arange(6.0)
    assert f.__name__ == "f"
    assert f.__doc__ == "Documented."
    assert [traces(x), traces(x + 1), traces(xp.ones(6))] == [1, 0, 0]
    assert [traces(x, n=2), traces(x, n=3), traces(x, n=3.0), traces(x, n=3)] == [1, 0, 1, 0]
    assert [traces(x, n=0.0), traces(x, n=-0.0), traces(x, n=0.0)] == [0, 0, 0]
    assert [traces(x, n=float("nan")), traces(x, n=float("inf"))] == [0, 0]
    assert [traces(x, n=True), traces(x, n=1)] == [1, 0]
    assert [traces(x[::-1]), traces(x[1:]), traces(x.astype("int32"))] == [1, 1, 1]
    assert [traces(x, x), traces(x, x + 1), traces(x, b=x), traces(x, c=x)] == [1, 1, 1, 1]
    assert [traces(np.arange(6.0)), traces(np.arange(6.0) + 1)] == [0, 0]
    assert [traces(np.arange(5)), traces(np.arange(5)[::-1])] == [1, 0]
    f.cache_clear()
    assert [traces(x), traces(x)] == [1, 0]
    with xp.config.override(fusion="off"):
        assert [traces(x), traces(x)] == [1, 0]
    assert traces(x) == 0
    with pytest.warns(xp.JitWarning, match="traced it for 64 signatures") as warned:
        assert [len(f(xp.zeros(length + 2))[0]) for length in range(70)] == [2] * 70
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert traces(x) == 1  # the least recently used has gone


def test_arguments_in_containers(xp: ModuleType) -> None:
    @xp.jit
    def f(state: Any, options: Any) -> Any:
        (x, y), more = state
        more["k"] += 1
        return Pair(x + more["k"], [y * options[0]]), {1: x, "t": (y,)}

    def make(m: Any) -> tuple[Any, ...]:
        return (Pair(m.arange(3.0), m.ones(3)), {"k": m.zeros(3)}), [2, "a"]

    ours, theirs = make(xp), make(np)
    for _ in range(CALLS):
        assert_same(f(*ours), f.__wrapped__(*theirs))
        assert_same(ours, theirs)


def test_what_a_function_looks_up_is_looked_up_at_every_call(xp: ModuleType) -> None:
    w = xp.ones(3)
    held = SimpleNamespace(m=xp, state={"w": xp.zeros(3)}, rate=2.0, unused=0)
    table = [1, 2]

    def helper(x: Any) -> Any:
        return x * table[0] + held.state["w"] * held.rate

    @xp.jit
    def f(x: Any) -> Any:
        nonlocal w
        held.state["w"] += 1
        w *= 2
        return helper(x) + w

    x = xp.arange(3.0)
    results = []

    def call() -> int:
        return counted(xp, lambda: results.append(host(f(x)).tolist()))[0]

    assert [call(), call()] == [1, 0]
    assert results == [[4, 5, 6], [8, 9, 10]]
    w[:] = 0
    held.state["w"][1:] = 10
    held.unused = 5
    assert [call(), results[-1]] == [0, [6, 23, 24]]
    table[0] = 0
    held.rate = 1
    assert [call(), results[-1]] == [1, [4, 12, 12]]
    held.state["w"] = xp.ones(3)
    w = xp.full(3, 5.0)
    assert [call(), call(), results[-1]] == [1, 0, [23, 23, 23]]


class Model:
    def __init__(self, m: ModuleType) -> None:
        self.m = m
        self.weights = m.ones(4)
        self.calls = 0


def test_methods(xp: ModuleType) -> None:
    class Trained(Model):
        @xp.jit
        def step(self, x: Any) -> Any:
            self.weights -= self.gradient(x) * self.rate
            return self.weights.sum()

        def gradient(self, x: Any) -> Any:
            return self.m.tanh(x) + self.weights

        @xp.jit
        def counting(self, x: Any) -> Any:
            self.calls += 1
            return x + 1

        rate = 0.5

    one, other = Trained(xp), Trained(xp)
    plain = Trained(np)
    x = ordinary(7, 4, "float64")
    step = Trained.step.__wrapped__  # type: ignore[attr-defined]
    for _ in range(CALLS):
        expected = step(plain, x)
        assert host(one.step(xp.asarray(x))) == pytest.approx(expected)
        assert host(other.step(xp.asarray(x))) == pytest.approx(expected)
    one.weights = xp.zeros(4)
    plain.weights = np.zeros(4)
    Trained.rate = 0.25
    assert host(one.step(xp.asarray(x))) == pytest.approx(step(plain, x))
    with pytest.raises(xp.JitError, match="counting changes calls"):
        one.counting(xp.asarray(x))
    assert one.calls == 0


def test_globals_of_an_installed_package_are_watched(xp: ModuleType) -> None:
    path = str(Path(sysconfig.get_path("purelib")) / "installed" / "steps.py")
    names: dict[str, Any] = {"__name__": "installed.steps", "rate": 2}
    exec(compile("def helper(x): return x * rate\ndef f(x): return helper(x) + 1", path, "exec"),
         names)
    f = xp.jit(names["f"])
    assert host(f(xp.ones(2))).tolist() == [3, 3]
    names["rate"] = 4
    assert host(f(xp.ones(2))).tolist() == [5, 5]


def refused(xp: ModuleType, function: Any, match: str, *args: Any) -> None:
    """The function is refused, at a line of this file, and its arguments are as they were."""
    before = [host(a) for a in args]
    jitted = xp.jit(function)
    for _ in range(2):
        with pytest.raises(xp.JitError, match=match):
            jitted(*args)
    for argument, values in zip(args, before, strict=True):
        assert problem_bitwise(argument, values) is None


def test_looking_at_a_value_is_refused_with_line_and_way_out(xp: ModuleType) -> None:
    x, n = xp.arange(4.0), xp.asarray(3)
    looked = r"looked at, at .*test_jit.py:\d+, while clfuse.jit traces .*np.where instead of `if`"

    def branches(x: Any) -> Any:
        x += 1
        return x if x.any() else -x

    def catches(x: Any) -> Any:
        try:
            return x * float(x.sum())
        except TypeError:
            return x

    refused(xp, branches, looked, x)
    refused(xp, catches, looked, x)
    for look in (lambda x: float(x[0]), lambda x: str(x), lambda x: x.tolist(), np.asarray,
                 lambda x: next(iter(x)), lambda x: x.get(), lambda x: hash(x[1]),
                 lambda x: x[:int(n)], lambda x: np.sin(x.get())):
        refused(xp, look, "looked at", x)
    refused(xp, lambda x, n: x[:n], "looked at", x, n)
    refused(xp, lambda x: xp.linalg.svd(x.reshape(2, 2)), "while clfuse.jit traces", x)
    refused(xp, xp.vectorize(lambda value: value + 1), "vectorize: no kernel does this", x)
    assert host(xp.jit(lambda x, n: x[:n])(x, 3)).tolist() == [0, 1, 2]
    assert host(xp.jit(lambda x: x * float(xp.arange(3).sum()))(x)).tolist() == [0, 3, 6, 9]


def test_what_a_replay_would_not_do_again_is_refused(xp: ModuleType) -> None:
    x, kept, total = xp.arange(4.0), [], 0
    numbers = np.arange(4.0)

    def appends(x: Any) -> Any:
        kept.append(x * 2)
        return x

    def counts(x: Any) -> Any:
        nonlocal total
        total += 1
        return x

    def reshapes(x: Any) -> Any:
        x.shape = (2, 2)
        return x

    def generates(x: Any) -> Any:
        yield x

    def flags(x: Any) -> None:
        x.flags.writeable = False

    refused(xp, appends, "changes a list", x)
    refused(xp, counts, "changes total", x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of setting the shape: NumPy 2.5
        refused(xp, reshapes, "shape, dtype or flags", x)
    refused(xp, flags, "shape, dtype or flags", x)
    refused(xp, generates, "generator", x)
    refused(xp, lambda x: x + numbers, "numbers: a numpy.ndarray", x)
    refused(xp, lambda x: set(), "returns a set", x)
    assert (kept, total, x.shape, x.flags.writeable) == ([], 0, (4,), True)
    given = {"a": x}
    with pytest.raises(xp.JitError, match="changes a dict"):
        xp.jit(lambda d: d.update(b=d["a"] * 2))(given)
    assert list(given) == ["a"]
    with pytest.raises(xp.JitError, match=r"writes into .*numpy.ndarray"):
        xp.jit(lambda a: a.__setitem__(0, 5))(numbers)
    assert numbers[0] == 0
    leaked = []
    holder = SimpleNamespace()

    def leaks(x: Any) -> Any:
        sys_like = getattr(holder, "put", None)
        sys_like(x * 3)
        return x + 1

    holder.put = leaked.append
    assert host(xp.jit(leaks)(x)).tolist() == [1, 2, 3, 4]
    with pytest.raises(xp.JitError, match="outside of it"):
        host(leaked[0])
    xp.evaluate()  # everything else that is pending


def test_errors_of_the_function_are_its_own_and_nothing_is_kept(xp: ModuleType) -> None:
    fail = [True]

    def f(x: Any, y: Any) -> Any:
        x += 1
        if fail[0]:
            raise KeyError("mine")
        return x + y

    jitted = xp.jit(f)
    x = xp.zeros(3)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            jitted(x, x)
    assert host(x).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="broadcast"):
        xp.jit(lambda a, b: a + b)(x, xp.zeros(4))
    fail[0] = False
    assert host(jitted(x, x)).tolist() == [2, 2, 2]
    assert host(x + 1).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="missing 1 required positional"):
        jitted(x)


def test_results_are_arrays_of_their_own(xp: ModuleType) -> None:
    f = xp.jit(lambda x: (x * 2, x.copy(), xp.ones(3), x[1:]))
    x = xp.arange(3.0)
    for _ in range(CALLS):
        double, copy, ones, view = f(x)
        snapshot = np.asarray(double)
        double += 1
        copy[0] = 7
        ones *= 5
        assert host(x).tolist() == [0, 1, 2]
        assert [host(a).tolist() for a in (double, copy, ones)] == [
            [1, 3, 5], [7, 1, 2], [5, 5, 5]]
        assert view.base is x
        view[:] = 9
        assert host(x).tolist() == [0, 9, 9]
        view[:] = [1, 2]
        assert snapshot.tolist() == [0, 2, 4]
        later = double * 0.5
        f(x)
        assert host(later).tolist() == [0.5, 1.5, 2.5]


@pytest.mark.usefixtures("uncollected")
def test_donated_memory_holds_results_and_nobody_else_sees_it(
    xp: ModuleType, shares_memory: bool
) -> None:
    def f(x: Any, y: Any) -> Any:
        return x * 2 + y

    plain, donating = xp.jit(f), xp.jit(donate="x")(f)
    n = 100_000
    y = xp.ones(n)
    xp.evaluate(y)

    def grown(call: Any, x: Any) -> int:
        call(x, y)
        xp.evaluate(x * 1 if call is plain else y)
        before = xp.stats()["device_bytes_now"]
        held = xp.asarray(np.arange(n) + 0.5)
        made = call(held, y)
        used = xp.stats()["device_bytes_now"] - before
        assert host(made[:3]).tolist() == [2, 4, 6]
        if call is donating:
            with pytest.raises(xp.JitError, match=r"donated to .*f is used at .*test_jit.py"):
                held.get()
            with pytest.raises(xp.JitError, match="donated"):
                plain(held, y)
        return int(used)

    assert grown(plain, xp.zeros(n)) == 16 * n
    assert grown(donating, xp.zeros(n)) == 8 * n
    # A copy, a snapshot on the host, pending work and a second argument may not see the write.
    x = xp.asarray(np.arange(n) * 1.0)
    copy, snapshot, pending = x.copy(), np.asarray(x), x + 1
    assert host(donating(x, copy)[:3]).tolist() == [0, 3, 6]
    assert [host(copy)[2], snapshot[2], host(pending)[2]] == [2, 2, 3]
    z = xp.asarray(np.arange(n) * 1.0)
    assert host(donating(z, z)[:3]).tolist() == [0, 3, 6]
    step = xp.jit(lambda x: x.__iadd__(1), donate=["x"])
    z = xp.asarray(np.arange(n) * 1.0)
    for number in range(1, CALLS + 1):
        assert step(z) is z
        assert host(z)[5] == 5 + number
    if shares_memory:
        shared = np.arange(n) * 1.0
        step(xp.asarray(shared, copy=False))
        assert shared[1] == 1
    with pytest.raises(ValueError, match="no parameter"):
        xp.jit(f, donate="q")


def test_threads_call_one_function(xp: ModuleType) -> None:
    bias = xp.ones(50)
    gate = threading.Barrier(8)

    @xp.jit
    def f(x: Any, n: int) -> Any:
        y = xp.sqrt(x + bias) * n
        return y, (y @ y)

    def work(number: int) -> None:
        gate.wait(60)
        x = xp.arange(50.0) + number
        expected = np.sqrt(np.arange(50.0) + number + 1) * (number % 3)
        for _ in range(5):
            y, square = f(x, number % 3)
            xp.evaluate()
            assert problem_bitwise(y, expected) is None
            assert host(square) == pytest.approx(expected @ expected)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8), timeout=300))


def test_functions_that_call_each_other(xp: ModuleType) -> None:
    inner = xp.jit(lambda x: x * 2)
    outer = xp.jit(lambda x: inner(inner(x)) + 1)
    x = xp.arange(3.0)
    for _ in range(CALLS):
        assert host(outer(x)).tolist() == [1, 5, 9]
    assert counted(xp, lambda: inner(x)) == (1, 0)
    assert counted(xp, lambda: outer(inner(x))) == (0, 2)


def test_random_numbers_are_those_of_the_function(xp: ModuleType) -> None:
    def f(rng: Any, x: Any) -> Any:
        own = xp.random.default_rng(5).random(3)
        steps = rng.random(x.shape) + xp.random.random_sample(4)
        return x + steps, rng.integers(0, 10, 6), own

    jitted = xp.jit(f)
    one, other = xp.random.default_rng(1), xp.random.default_rng(1)
    x = xp.zeros(4)
    for seed in (3, 3, 4):
        drawn = []
        for function, rng in ((f, one), (jitted, other)):
            xp.random.seed(seed)
            drawn.append([[host(a) for a in function(rng, x)] for _ in range(CALLS)])
        assert_same(*drawn)
        assert not np.all(drawn[0][0][0] == drawn[0][1][0])
    assert one.bit_generator.state == other.bit_generator.state
    again = xp.random.default_rng(1)
    assert_same(host(jitted(again, x)[1]), host(f(xp.random.default_rng(1), x)[1]))
    for function in (lambda x: x + one.random(), lambda x: x + xp.random.default_rng().random(4),
                     lambda x: x * xp.random.seed(1),
                     lambda x: x + one.bit_generator.advance(2).state["state"]["position"],
                     lambda x: x * float(one.random(3).sum())):
        refused(xp, function, r"while clfuse.jit traces", x)
    assert one.bit_generator.state == other.bit_generator.state


def test_a_replay_launches_the_kernels_of_the_plan(
        xp: ModuleType, launched: Callable[..., int]) -> None:
    @xp.jit
    def f(x: Any) -> Any:
        return xp.sqrt(x * x + 1) - x

    x = xp.asarray(np.arange(1000.0))
    f(x)
    assert launched(lambda: f(x)) == 1
    before = xp.stats()
    f(x)
    after = xp.stats()
    same = ("nodes_recorded", "plans_made", "plans_reused", "programs_built")
    assert [after[name] - before[name] for name in same] == [0, 0, 0, 0]
    with xp.profile() as seen:
        f(x)
        xp.synchronize()
    assert "sqrt" in str(seen)


def test_nothing_of_a_trace_is_left(xp: ModuleType) -> None:
    """Leftovers would make every later evaluation look for them."""
    from clfuse.ir import nodes, trace

    f = xp.jit(lambda x, t: (x * t + xp.random.random_sample(3), x.sum()))
    x = xp.ones(3)
    f(x, np.float64(2))
    assert trace.active() is None
    assert not isinstance(nodes.Storage.__dict__["node"], property)
    gc.collect()
    assert trace._alive == [0]
    assert host(f(x, np.float64(3))[1]) == 3
