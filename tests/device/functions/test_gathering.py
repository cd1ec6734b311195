"""Integer arrays as indices against NumPy: what is read, written and refused, and what it costs.

`LINES` hold one expression or statement a line; `m` is the module. Everything is evaluated
together, because every kernel takes time to build.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support import hostile
from tests.support.agreement import Batch, assert_bitwise, host, problem_bitwise
from tests.support.releases import is_of_later_releases
from tests.support.rounds import rounds

Launched = Callable[[Callable[[], object]], int]
Setting = Callable[..., None]

SETUP = """
a=m.arange(60.).reshape(3,4,5)
b=m.arange(12).reshape(3,4)
v=m.arange(5.)
e=m.zeros((0,4))
i=m.array([2,0,-1,2])
u=m.array([1,2],'u8')
q=m.array([[0,2,1],[1,0,3],[3,3,-4]])
c=m.array([1+2j,-3j,4])
h=m.array([1,2.5,-3],'f2')
t=m.array([True,False,True,True])
o=m.zeros(4)
w=m.arange(24)[::2].reshape(3,4)
"""
READING = r"""
m.take(a,i)
m.take(a,i,1)
m.take(a,i[:2]-1,axis=-1)
m.take(a,3)
m.take(a,1,axis=1)
m.take(v,i*50,mode='wrap')
m.take(v,i+4,mode='clip')
m.take(v,i+4)
m.take(v,u), m.take(v,t)
m.take(b.T,i,0), m.take(b[::-1,1:],i[1:],0)
m.take(v,[0.5])
m.take(e,[0],1)
m.take(e,[0])
m.take(e,[],0)
m.take(v,i,out=o)
m.take(v,i,0,o,'clip')
m.take(v,i,out=o[:2])
m.take(v,i,mode='bad')
m.take(v,i,axis=1)
m.take(c,[2,0]), m.take(h,[2,0]), m.take(t,[1,0])
v.take(i), a[1,2].take([0,1]), v[0].take(0)
v.take([7])
m.take([5,6,7],i[:2]-1)
m.take_along_axis(b,q,1), m.take_along_axis(w,q,axis=-1), m.take_along_axis(b[:1],q,1)
m.take_along_axis(b,m.argmax(b,axis=1,keepdims=True),1)
m.take_along_axis(b,i,None)
m.take_along_axis(b,q+4,1)
m.take_along_axis(b,q[:,0],1)
m.take_along_axis(b,q*0.5,1)
m.choose([0,1,1,0],[v[:4],v[1:]]), m.choose(i%2,[v[:4],9])
m.choose(i,[v[:4],9])
m.choose(i,[v[:4],9],mode='wrap'), m.choose(i,[v[:4],9],mode='clip')
m.choose(t,[1,2.5]), m.choose(1,[v,v*2]), (i%2).choose([1,2])
m.choose([[1],[0]],[[1,2,3],m.float32(4)])
m.choose(q%3,b)
m.choose([0.5],[1,2])
m.choose(u,[1,2,3])
v[u], v[i.astype('u1')%5], v[i.astype('i1')]
v[[m.int64(1),2]], v[[i[0],1]], v[[i,i]]
b[m.ix_([0,2],[1,-1])], b[m.ix_(i[:2],i[1:3])]
m.ix_([[0]],[1])
m.arange(10)[i], m.zeros(5)[i], m.full((3,4),2)[i[:2]], m.ones((1,1))[[0,0],[0,-1]]
c.real[[0,2]], c.imag[i[:3]], c.view('f8')[[0,5]]
b.astype('f4')[[0,1]][:,[2,3]], a[:,i][...,i], b.ravel()[q], b.flat[[1,2]]
v[m.array(2)], b[m.array(1)], b[m.array(1),m.array(2)], b[m.array(1),i]
b[m.array(1),m.array(2),...]
v[5:0:-1][i], m.broadcast_to(v,(3,5))[i[:3]]
v[m.arange(4)], v[m.arange(4)[::-1]], v[m.arange(1,5)-1]
v[i//2], v[i&3], v[m.clip(i,0,1)], v[m.where(i<0,0,i)], v[i>>1], v[(v*0.9).astype(int)]
a.sum(0)[i[:3]].sum(), a.argmax(1)[[0]], v[a.argmax(2)].sum(1)
m.roll(v,1)[i], m.concatenate([v,v])[i+5], v[m.concatenate([i,i])]
v[[9]]
v[i+9]
v[i.astype('u1')]
b[i,i]
b[3,i]
b[[0,1],[0,1,2]]
b[[0],[0],[0]]
b['x']
b[[0.5]]
""".strip().splitlines()
WRITING = r"""
m.put(b,[0,-1,2,0],[5,6]); b.put(i,1.7); m.put(b.T,[1,2],[50,51])
m.put(b,[99],1)
m.put(b,[99,-99],[1,2],mode='clip'); m.put(w,[99,-99],[1,2],mode='wrap')
m.put(v,[1],[])
m.put(v,[0.5],1)
m.putmask(v,v>2,[10,20]); m.putmask(b[:,1:],b[:,1:]>4,m.array([1,2,3]))
m.putmask(v,v>2,v*10)
m.putmask(v,v>2,-1)
m.putmask(v,t,1)
m.place(v,v>2,[10,20,30]); m.place(b,b%2==0,[1.5])
m.place(v,v>2,[])
m.place(b,t,[1])
m.put_along_axis(b,q,7,1)
m.put_along_axis(b,m.argmax(b,axis=0,keepdims=True),m.array([[1,2,3,4]]),0)
m.put_along_axis(b,q+9,7,1)
m.add.at(v,[0,0,1],1); m.add.at(v,i,v[:4]); m.add.at(b,(i[:3],[0,0,1]),[1,2,3])
m.add.at(b,(slice(None),[0,0]),1); m.multiply.at(h,[0,0],2); m.maximum.at(v,[1,1],[3,9])
m.negative.at(v,[1,1,2]); m.add.at(v,2,1); m.power.at(v,[1],2); m.add.at(v,v>2,1)
m.add.at(v,[9],1)
m.add.at(v,[0,1],1j)
m.add.at(v,[0,1],[1,2,3])
m.add.at(b,[0,1],0.5)
v[i]=m.arange(4.)
v[i]+=1
v[i]=v[::-1][:4]
b[q%3,q]=q; b.T[[0,1]]=1; b[1:][[0,1]]=9
b[:,[0,-1]]=b[:,[-1,0]]
c.real[[0,1]]=5; c[[0,2]]=[1,2]
v[i]=1j
v[i]=[1,2]
v[[1,9]]=1
v[[]]=4
b[i[:3],i[1:]]=2.9
z=v+1; z[i]=0; v+=z
z=v; z[[1]]=9; z[1:][[0]]+=1
y=v[i]; v[i]=0; v[:4]+=y
y=v*2; v[2:]=y[i[:3]]; y[[0,1]]=v[:2]
o[:]=v[i]; v[[0,1]]=o[:2]; o+=v[i]
v[1:3]=v[i[:2]]; v*=v[[4,3,2,1,0]]
y=v.copy(); v[i]=7; y[1:3]=8; v+=y
y=v.copy(); v[i]=7; y[i]=8; v+=y
""".strip().splitlines()


@pytest.fixture(params=["cpu", "gpu"])
def schedule(request: pytest.FixtureRequest, xp: ModuleType, setting: Setting) -> str:
    if hasattr(xp, "config"):
        setting(schedule=request.param, debug=True)
    return str(request.param)


def outcome(m: ModuleType, line: str) -> Any:
    """An expression's value, all arrays after a statement, or the error that it raises."""
    names: dict[str, Any] = {"m": m}
    exec(SETUP, names)
    try:
        if line in READING:
            return eval(line, names)
        exec(line, names)
    except Exception as error:
        return error
    return [names[name] for name in "abvcthow"]


def pairs(actual: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            yield from pairs(one, other)
    else:
        yield actual, expected


def test_reading_and_writing_agree_with_numpy_and_its_errors(
        xp: ModuleType, setting: Setting) -> None:
    if hasattr(xp, "config"):
        setting(debug=True)
    problems: list[str] = []
    found: list[tuple[str, Any, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in READING + WRITING:
            actual, expected = outcome(xp, line), outcome(np, line)
            if isinstance(actual, Exception) or isinstance(expected, Exception):
                same = (type(actual), str(actual)) == (type(expected), str(expected))
                if not same and not is_of_later_releases(actual, expected):
                    problems.append(f"{line}: {actual!r}, NumPy: {expected!r}")
                continue
            found += [(line, *pair) for pair in pairs(actual, expected)]
    getattr(xp, "evaluate", lambda *arrays: None)(*[actual for _, actual, _ in found])
    for line, actual, expected in found:
        if isinstance(actual, np.generic) != isinstance(expected, np.generic):
            problems.append(f"{line}: {type(actual)}, NumPy: {type(expected)}")
        elif problem := problem_bitwise(actual, expected):
            problems.append(f"{line}: {problem}")
    assert not problems, "\n".join(problems[:20])


class Index:
    """A random index for an array of some shape; rarely one that NumPy refuses."""

    def __init__(self, random: random.Random, shape: tuple[int, ...]) -> None:
        self.random = random
        self.items: list[Any] = []
        axis = 0
        for _ in range(random.randint(1, len(shape) + 1)):
            chance = random.random()
            if chance < 0.15 and Ellipsis not in [x for x in self.items if x is Ellipsis]:
                self.items.append(Ellipsis)
            elif chance < 0.27:
                self.items.append(None)
            elif axis < len(shape) or random.random() < 0.1:
                self.items.append(self._for_axis(shape[axis] if axis < len(shape) else 3))
                axis += 1

    def _for_axis(self, extent: int) -> Any:
        choice, chance = self.random.choice, self.random.random()
        too_far = self.random.random() < 0.04
        if chance < 0.25:
            return slice(choice([None, 0, 1, -1]), choice([None, 2, -1]), choice([None, 1, 2, -1]))
        if chance < 0.4:
            return self.random.randint(-extent - too_far, max(extent - 1, 0) + too_far)
        shape = choice([(2,), (2,), (1,), (), (3, 2), (1, 2), (2, 1), (0,), (2, 2)])
        numbers = [self.random.randrange(-extent - too_far, max(extent, 1) + too_far)
                   for _ in range(int(np.prod(shape)))]
        array = np.array(numbers, choice(["i8", "i4", "i1", "i2"])).reshape(shape)
        return choice(["list", "numpy", "device", "device"]), array

    def under(self, m: ModuleType) -> tuple[Any, ...]:
        made = []
        for item in self.items:
            if type(item) is tuple:
                how, array = item
                item = array
                if how == "list":
                    item = array.tolist()
                elif how == "device":
                    item = m.array(array)
            made.append(item)
        return tuple(made)


def test_random_indices_select_and_write_what_numpys_do(xp: ModuleType, schedule: str) -> None:
    draw = random.Random(f"gathers {schedule}")
    batch = Batch(xp)
    numbers = np.arange(120.0)
    for _ in range(rounds(60)):
        shape = draw.choice([(5,), (3, 4), (2, 3, 4), (2, 3, 4, 5), (1, 4), (0, 3), (4, 1, 3)])
        turn = draw.choice([lambda x: x, lambda x: x, lambda x: x.T, lambda x: x[::-1],
                            lambda x: x[..., 1:]])
        index = Index(draw, turn(numbers[:int(np.prod(shape))].reshape(shape)).shape)
        value = draw.choice([7.0, None])

        def read(m: ModuleType, shape: Any = shape, turn: Any = turn, index: Any = index) -> Any:
            return turn(m.asarray(numbers)[:int(np.prod(shape))].reshape(shape))[index.under(m)]

        def wrote(m: ModuleType, shape: Any = shape, turn: Any = turn, index: Any = index,
                  value: Any = value) -> Any:
            array = turn(m.asarray(numbers)[:int(np.prod(shape))].reshape(shape).copy())
            key = index.under(m)
            array[key] = array[key] * 2 - 1 if value is None else value
            return array

        batch.same(f"{shape} {index.items}", read)
        if draw.random() < 0.3:
            batch.same(f"{shape} {index.items} written {value}", wrote)
    batch.check()


@pytest.mark.parametrize("dtype", hostile.DTYPES)
def test_every_bit_of_an_element_is_selected(dtype: str, xp: ModuleType) -> None:
    values = np.resize(hostile.hostile(dtype), 67)
    index = np.random.default_rng(3).integers(-67, 67, 131)
    batch = Batch(xp)
    batch.same("vector", lambda m: m.asarray(values)[m.asarray(index)])
    batch.same("rows", lambda m: m.asarray(values[:66].reshape(6, 11))[m.asarray(index % 6)])
    batch.same("columns", lambda m: m.asarray(values[:66].reshape(6, 11))[:, index % 11])

    def scattered(m: ModuleType) -> Any:
        array = m.asarray(values) * 1
        array[m.asarray(index)] = m.asarray(np.resize(values[::-1], 131))
        return array

    batch.same("scattered", scattered)
    batch.check()


@pytest.mark.clfuse_only
def test_a_lookup_is_one_kernel_and_its_check_another_once(xp: ModuleType,
                                                           launched: Launched) -> None:
    numbers = np.random.default_rng(5).integers(-100, 100, 10_000)
    table, w = xp.asarray(np.linspace(0, 1, 100)), xp.asarray(np.linspace(2, 3, 10_000))
    index = xp.asarray(numbers)

    def lookup() -> None:
        xp.evaluate(table[index] * w + 1)

    # All bounds are found by one fold, which takes a GPU a launch for the pieces and one for them.
    assert launched(lookup) == (2 if xp.get_device().traits.schedule == "cpu" else 3)
    assert launched(lookup) == 1
    assert launched(lambda: xp.evaluate(table[index[5:]] + 1)) == 1
    assert launched(lambda: xp.evaluate(table[numbers] * w + 1)) == 1, "a host index needs none"
    (kernel,) = xp.explain(table[index] * w + 1).kernels
    assert {"gather", "multiply", "add"} <= set(kernel.ops)
    assert len(xp.explain(xp.exp(table)[index] * 2).kernels) == 2, "indices are not stored"


@pytest.mark.clfuse_only
def test_an_index_that_cannot_be_wrong_stays_lazy(xp: ModuleType, launched: Launched) -> None:
    rng = np.random.default_rng(7)
    x = xp.asarray(rng.integers(-1000, 1000, 4000))
    image = xp.asarray(rng.integers(0, 256, (40, 50), "u1"))
    table = xp.asarray(rng.random(256))
    near = xp.asarray(rng.random((300, 7)))
    for call, most in ((lambda: table[x % 256] + 1, 1), (lambda: table[image] * 2, 1),
                       (lambda: table[near.argmin(1)], 1), (lambda: table[xp.arange(200)], 1),
                       (lambda: table[(x & 15) * 16 + 3], 1)):
        kept: list[Any] = []
        assert launched(lambda call=call, kept=kept: kept.append(call())) == 0
        assert launched(lambda kept=kept: xp.evaluate(*kept)) == most


@pytest.mark.clfuse_only
def test_a_part_of_an_index_may_be_right_in_a_wrong_whole(xp: ModuleType) -> None:
    index = xp.asarray(np.array([1, 2, 3, 50, -60]))
    table = xp.arange(5.0)
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 5"):
        table[index]
    assert_bitwise(table[index[:3]], np.arange(5.0)[1:4])
    index[3:] = 0
    assert_bitwise(table[index], np.array([1.0, 2, 3, 0, 0]))


@pytest.mark.clfuse_only
def test_writing_through_indices_copies_nothing(xp: ModuleType) -> None:
    if not xp.get_device().traits.unified_memory:
        pytest.skip("the device has memory of its own")
    big, index = xp.zeros(100_000), xp.asarray(np.array([5, 7, 5]))
    big += 1
    xp.evaluate(big)
    xp.synchronize()
    xp.counters.reset_peak()
    before = xp.stats()
    for step in range(3):
        big[index] += step
        xp.add.at(big, index, 1.0)
        xp.evaluate(big)
    after = xp.stats()
    assert after["fallbacks"] == before["fallbacks"]
    assert after["device_bytes_peak"] - before["device_bytes_now"] < 100_000 * 8
    assert host(big)[[5, 7, 0]].tolist() == [10.0, 7.0, 1.0]


@pytest.mark.clfuse_only
def test_who_holds_the_old_contents_keeps_them(xp: ModuleType) -> None:
    x = xp.arange(1000.0) * 2
    index = xp.asarray(np.arange(0, 1000, 3))
    seen = np.asarray(x)
    before, looked_up = x + 0, x[index]
    x[index] = -1
    x[:10] = x[index[:10]]
    assert_bitwise(looked_up, np.arange(0, 1000, 3) * 2.0)
    assert_bitwise(before, np.arange(1000.0) * 2)
    expected = np.arange(1000.0) * 2
    expected[::3] = -1
    expected[:10] = expected[::3][:10]
    assert_bitwise(x, expected)
    assert seen[3] == 6


def test_scalars_that_do_not_fit_are_cast_as_by_numpy(xp: ModuleType) -> None:
    """NumPy refuses them for elements and slices only."""
    wide = np.array([-5, 5, 20], "int8")

    def written(m: Any) -> Any:
        x, scalar = m.zeros((4, 2), "int8"), m.asarray(wide).prod()
        x[m.asarray(np.array([0, 0]))] = scalar
        x[m.asarray(np.array([False, True, False, False]))] = scalar
        m.copyto(x[2], scalar, casting="unsafe")
        x[[3]] = np.int64(-300)
        return x, m.full(3, scalar, "int8"), m.full_like(x, scalar)

    for want, got in zip(written(np), written(xp), strict=True):
        assert_bitwise(host(got), want)
    with pytest.raises(OverflowError):
        xp.zeros(3, "int8")[:2] = xp.asarray(wide).prod()


@pytest.mark.clfuse_only
@pytest.mark.parametrize("name", ["argsort", "flatnonzero", "argpartition", "nonzero"])
def test_positions_from_numpy_need_no_look_until_written_to(
    xp: ModuleType, name: str
) -> None:
    values = np.sin(np.arange(300_000.0))

    def positions(module: ModuleType, x: Any) -> Any:
        match name:
            case "argsort":
                return module.argsort(x)
            case "argpartition":
                return module.argpartition(x, 7)
            case "flatnonzero":
                return module.flatnonzero(x > 0)
        return module.nonzero((x > 0).reshape(2, -1))[1]

    with xp.config.override(host_us=0, build_after_ms=0):
        x = xp.asarray(values)
        found = positions(xp, x)
        xp.evaluate(found)
        before = xp.stats()["kernels_launched"]
        chosen = x[found]
        assert xp.stats()["kernels_launched"] == before
        want = values[positions(np, values)]
        if name == "argpartition":  # both parts in any order
            parts = np.asarray(chosen), want
            chosen, want = (np.concatenate([np.sort(x[:7]), np.sort(x[7:])]) for x in parts)
        np.testing.assert_array_equal(np.asarray(chosen), want)
        found[3] = len(values)
        with pytest.raises(IndexError, match="out of bounds"):
            x[found]


def test_writing_by_index_arrays_to_an_array_made_of_one_number(xp: ModuleType) -> None:
    # The number is no memory: the index array's was taken for it, and overwritten.
    x = xp.array(5.0)
    x.reshape(-1)[[0, -1]] = 3
    x.flat[[0, 0]] = [3, 4]
    places = xp.array([0, 0])
    y = xp.full((), 7.0).reshape(1)
    y[places] = xp.array([1.0, 2.0])
    assert (y.tolist(), places.tolist()) == ([2.0], [0, 0])
    assert x.tolist() == 4.0


def test_a_flat_iterator_knows_where_it_is_also_at_the_end(xp: ModuleType) -> None:
    for shape in ((), (3,), (2, 3), (0, 3), (2, 0)):
        expected, actual = np.zeros(shape).flat, xp.zeros(shape).flat
        for _ in range(expected.base.size):
            assert (actual.coords, actual.index) == (expected.coords, expected.index)
            assert next(actual) == next(expected)
        assert actual.index == expected.index
        assert actual.coords == expected.coords or 0 in shape
