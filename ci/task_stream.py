"""Measures a program on clfuse chunks in two worker processes, beside one process, and draws what
the workers did: ci/task_stream.png. Run from the repository: python ci/task_stream.py"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import dask.array as da
import matplotlib
import numpy as np
from distributed import Client, LocalCluster

import clfuse
import clfuse.dask

REPETITIONS = 5
SHAPE, CHUNKS = (20_000, 1000), (2500, 1000)
PICTURE = Path(__file__).with_suffix(".png")
COLOURS = {"transfer": "tab:red", "deserialize": "tab:grey", "compute": "tab:blue"}


def program(m, x):
    """Columns standardised, then one number a row: two passes over what other workers hold."""
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    return m.tanh(scaled).sum(axis=1)


def median_ms(call):
    """Milliseconds of a call, the first one aside: it builds kernels."""
    call()
    elapsed = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        elapsed.append(1000 * (time.perf_counter() - start))
    return statistics.median(elapsed)


def draw(stream, title):
    matplotlib.use("agg")
    from matplotlib import pyplot

    rows = {thread: row for row, thread in enumerate(
        sorted({(task["worker"], task["thread"]) for task in stream}))}
    start = min(part["start"] for task in stream for part in task["startstops"])
    figure, axes = pyplot.subplots(figsize=(7, 1.8), layout="constrained")
    shown = set()
    for task in stream:
        for part in task["startstops"]:
            action = part["action"]
            axes.barh(rows[task["worker"], task["thread"]],
                      1000 * (part["stop"] - part["start"]), left=1000 * (part["start"] - start),
                      color=COLOURS.get(action, "tab:orange"), edgecolor="white", linewidth=0.4,
                      label=None if action in shown else action)
            shown.add(action)
    workers = sorted({worker for worker, _ in rows})
    axes.set_yticks(list(rows.values()), [f"process {workers.index(worker)}" for worker, _ in rows])
    axes.set_xlabel("milliseconds")
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=7, loc="upper right")
    figure.savefig(PICTURE, dpi=110)


def main():
    values = np.random.default_rng(0).standard_normal(SHAPE)
    expected = program(np, values)
    times = {"NumPy": median_ms(lambda: program(np, values))}
    whole = clfuse.array(values)
    times["clfuse, one process"] = median_ms(lambda: clfuse.evaluate(program(clfuse, whole)))
    chunked = da.from_array(whole, chunks=CHUNKS)
    times["clfuse chunks, threads of one process"] = median_ms(
        lambda: clfuse.evaluate(program(da, chunked).compute(num_workers=2)))
    with (LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
          Client(cluster) as client):
        client.register_plugin(clfuse.dask.Plugin())
        host = da.from_array(values, chunks=CHUNKS)
        kept = host.persist()
        times["NumPy chunks, two processes"] = median_ms(lambda: program(da, kept).compute())
        ours = kept.to_backend("clfuse").persist()
        times["clfuse chunks, two processes"] = median_ms(lambda: program(da, ours).compute())
        client.get_task_stream()  # from here on the scheduler keeps what happened
        start = time.time()
        result = program(da, ours).compute()
        stream = client.get_task_stream(start=start)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-9, atol=1e-9)
    for name, elapsed in times.items():
        print(f"{name:40} {elapsed:7.0f} ms {times['NumPy'] / elapsed:6.2f}x NumPy")
    draw(stream, "tanh((x - x.mean(0)) / x.std(0)).sum(1), 160 MB in 8 chunks, on two workers")
    print(PICTURE, PICTURE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
