"""clfuse arrays as chunks of Dask collections, and one device a worker.

Most needs nothing from here: Dask's chunk functions reach ours through NumPy's protocols
(`__array_function__`, `__array_ufunc__`), `__dask_tokenize__` names an array by its contents, and
arrays travel between workers by pickle's protocol 5, whose frames are the array's own memory
(`clfuse.interop.protocols.reduced`). That works in every process, whatever it has imported.

`arrays` has what Dask looks up by type, and the backend ``"clfuse"``; `worker` the plugin that
takes a device for each worker and computes what its tasks return. In a program::

    import dask.array as da, clfuse.dask
    x = da.from_array(host_array, chunks=1_000_000).to_backend("clfuse")
    client.register_plugin(clfuse.dask.Plugin())

For workers started by hand: ``dask worker ADDRESS --nworkers 4 --preload clfuse.dask``.
"""

from __future__ import annotations

from typing import Any

from .arrays import Backend, register

__all__ = ["Backend", "Plugin", "dask_setup", "take_device"]

register()


async def dask_setup(worker: Any) -> None:
    """What ``--preload clfuse.dask`` runs: workers get the plugin, schedulers and nannies none."""
    from distributed import Worker

    from .worker import NAME, Plugin

    if isinstance(worker, Worker):
        await worker.plugin_add(plugin=Plugin(), name=NAME)


def __getattr__(name: str) -> Any:
    # `dask[array]` comes without `distributed`, which `worker` needs.
    if name not in __all__:
        raise AttributeError(f"module 'clfuse.dask' has no attribute {name!r}")
    from . import worker

    return getattr(worker, name)
