"""Parameter sweeps in processes, after arrays were computed: pools, queues, os.fork, what is
inherited and what is sent.
"""

import multiprocessing
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

# From Python 3.12 on a fork beside threads is warned of, and clfuse's devices have threads.
warnings.filterwarnings("ignore", category=DeprecationWarning)


def energy(field):
    return float((np.sin(field) ** 2).sum())


def sample(seed):
    points = np.random.default_rng(seed).random((100_000, 2))
    return int(((points**2).sum(axis=1) < 1).sum())


def inherited(row):
    ordered = np.sort(table[row])[::-1]
    table[row] = 0  # nobody else sees it
    return ordered[:3], table[row].any()


def send(queue):
    queue.put(np.cumsum(np.ones(100_000))[::20_000])


table = np.cos(np.linspace(0, 20, 400_000)).reshape(4, -1)
total = table.sum()
waves = [np.arange(10.0), np.linspace(0, 1, 300_000), table[1] * 2]
print("before:", [round(energy(wave), 6) for wave in waves])

fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    print("sent:", np.round(pool.map(energy, waves), 6))
    print("drawn:", pool.map(sample, range(3)))
    for largest, is_left in pool.map(inherited, range(4)):
        print("inherited:", largest, bool(is_left))
with ProcessPoolExecutor(2, mp_context=fork) as executor:
    print("norms:", [float(norm) for norm in executor.map(np.linalg.norm, waves[:2])])

queue = fork.SimpleQueue()
process = fork.Process(target=send, args=(queue,))
process.start()
print("queued:", queue.get())
process.join()

sys.stdout.flush()
child = os.fork()
if child == 0:
    os._exit(int(abs(table.sum() - total) < 1e-6) * 7)
print("codes:", process.exitcode, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("after:", np.isclose(table.sum(), total), round(energy(waves[1]), 6))
