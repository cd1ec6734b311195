"""PyTorch's functions take our arrays, where it is installed: its wheels are too large for CI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clfuse

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

pytestmark = [  # torch says these of NumPy's arrays
    pytest.mark.filterwarnings("ignore:Creating a tensor from a list"),
    pytest.mark.filterwarnings("ignore:__array_wrap__ must accept context"),
]


class Rows(data.Dataset):  # type: ignore[misc, name-defined] # torch may be absent
    def __init__(self, m: Any) -> None:
        self.points, self.kinds = m.asarray(np.arange(12.0).reshape(6, 2)), m.arange(6)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, place: int) -> Any:
        return {"x": self.points[place], "total": self.points[place].sum()}, self.kinds[place]


def seen_both_ways(m: Any, make: Callable[[Any], Any]) -> Any:
    array = m.arange(4.0)
    tensor = make(array)
    array[0], tensor[1] = 7, 9
    return [tensor, torch.from_numpy(np.asarray(array).copy())]


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "from_numpy": lambda m, a: torch.from_numpy(a * 2),
    "tensor": lambda m, a: torch.tensor(a.T[::2], dtype=torch.float32),
    "of numbers": lambda m, a: torch.tensor([a[0, 0], a.sum()]),
    "a list": lambda m, a: torch.tensor([a[0], a[1]]),
    "asarray": lambda m, a: torch.asarray(a.astype(np.float32)),
    "as_tensor": lambda m, a: torch.as_tensor(a > 2),
    "shared by as_tensor": lambda m, a: seen_both_ways(m, torch.as_tensor),
    "shared by asarray": lambda m, a: seen_both_ways(m, torch.asarray),
    "shared by from_numpy": lambda m, a: seen_both_ways(m, torch.from_numpy),
    "operands": lambda m, a: [torch.ones(2, 3) * a, a.sum() * torch.ones(2), m.sin(torch.ones(2))],
    "indices": lambda m, a: torch.as_tensor(a[torch.tensor([1, 0])][:, torch.tensor(1)]),
    "a mask": lambda m, a: torch.as_tensor(a[torch.tensor(np.asarray(a)) > 2]),
    "batches": lambda m, a: [
        item for x, y in data.DataLoader(Rows(m), batch_size=4) for item in (x["x"], x["total"], y)
    ],
    "no batches": lambda m, a: [x["x"] for x, _ in data.DataLoader(Rows(m), batch_size=None)],
    "collated": lambda m, a: data.default_collate([(a, a[0, 0]), (a, a[0, 1])]),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_takes_our_arrays(name: str, host_us: int) -> None:
    values = np.arange(6.0).reshape(2, 3)
    expected = PROGRAMS[name](np, values)
    with clfuse.config.override(host_us=host_us):
        actual = PROGRAMS[name](clfuse, clfuse.asarray(values) + 0)
    if torch.is_tensor(expected):
        expected, actual = [expected], [actual]
    for one, other in zip(actual, expected, strict=True):
        assert torch.is_tensor(one)
        assert one.dtype == other.dtype
        assert torch.allclose(one, other)
