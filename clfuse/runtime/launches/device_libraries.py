"""Library calls on a device's own memory, by CLBlast and VkFFT.

Which of them there are, `drivers.libraries` says. They enqueue on the device's queue like kernels
do, so that nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from clfuse.counters import counters
from clfuse.runtime.context import lost
from clfuse.runtime.devices.device import Device
from clfuse.runtime.devices.selection import when_renewed
from clfuse.runtime.memory.buffers import Buffer
from clfuse.schedule.library_forms import Matrix, Product, Transform
from clfuse.schedule.records import LibraryCall

MOST_TRANSFORMS: Final = 64
"""Transforms of different shapes whose compiled kernels are kept."""


def call(step: LibraryCall, places: Sequence[Buffer | None]) -> None:
    """Enqueue a step whose `maker` says how; `places` are the buffers of the plan's values.

    Raises RuntimeError: the library refuses.
    Raises DeviceError: the device was lost.
    """
    counters["library_calls"] += 1
    try:
        _call(step, places)
    except lost.driver_error() as error:
        target = places[step.target]
        assert target is not None
        raise lost.error_of_driver(target.device, error, step.name) from error
    except RuntimeError as error:  # what both raise, whatever it was
        target = places[step.target]
        assert target is not None
        lost.require_alive(target.device, error)
        raise


def _call(step: LibraryCall, places: Sequence[Buffer | None]) -> None:
    target = places[step.target]
    assert target is not None
    if isinstance(step.maker, Product):
        _multiply(step.maker, step.dtype, places, target)
    else:
        assert isinstance(step.maker, Transform)
        source = places[step.maker.value]
        assert source is not None
        _transform(step.maker, step, source, target)


def _array(buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    from pyopencl import array

    return array.Array(buffer.device.queue, shape, dtype, data=buffer.mem)


def _multiply(
    product: Product, dtype: np.dtype[Any], places: Sequence[Buffer | None], target: Buffer
) -> None:
    import pyclblast

    rows, columns, batch = product.rows, product.columns, product.batch

    def operand(matrix: Matrix) -> Any:
        buffer = places[matrix.value]
        assert buffer is not None
        return _array(buffer, dtype, (buffer.nbytes // dtype.itemsize // matrix.leading, 1))

    left, right = product.left, product.right
    sizes = (rows, columns, product.inner)
    arrays = (operand(left), operand(right), _array(target, dtype, (rows * batch, columns)))
    leading = (left.leading, right.leading, columns)
    turned: dict[str, Any] = {"a_transp": left.turned, "b_transp": right.turned}
    turned |= {"a_offset": left.offset, "b_offset": right.offset}
    queue = target.device.queue
    if batch == 1:
        pyclblast.gemm(queue, *sizes, *arrays, *leading, **turned)
    else:
        steps = (left.step, right.step, rows * columns)
        pyclblast.gemmStridedBatched(queue, *sizes, batch, *arrays, *leading, *steps, **turned)


@lru_cache(maxsize=MOST_TRANSFORMS)
def _application(
    queue: Any, shape: tuple[int, ...], char: str, axes: tuple[int, ...], halves: bool
) -> Any:
    from pyvkfft.opencl import VkFFTApp

    # The inverse is divided by the number of points, the transform is not: NumPy's "backward".
    return VkFFTApp(shape, np.dtype(char), queue, axes=axes, inplace=False, norm=1, r2c=halves)


def _forget(device: Device) -> None:
    """Let go of kernels that were compiled for a lost device."""
    _application.cache_clear()


when_renewed.append(_forget)


def _transform(how: Transform, step: LibraryCall, source: Buffer, target: Buffer) -> None:
    (operand,) = step.operands
    halves = how.kind != "complex"
    char = step.dtype.char if how.kind != "real" else operand.dtype.char
    application = _application(target.device.queue, how.shape, char, how.axes, halves)
    change: Callable[[Any, Any], Any] = application.fft if how.is_forward else application.ifft
    change(_array(source, operand.dtype, operand.shape), _array(target, step.dtype, step.shape))
