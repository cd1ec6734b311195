import clfuse as np, numpy, time, cProfile, sys
import clfuse
@clfuse.kernel
def work(i, a):
    a[i] = a[i] + 1
def run(n):
    a = np.zeros((n,10)); np.evaluate(a)
    t=time.perf_counter()
    for b in range(n):
        work(10, a[b])
    t1=time.perf_counter()
    s=str(a)
    t2=time.perf_counter()
    assert float(a.sum())==10*n
    return t1-t, t2-t1
def runarr(n):
    a = np.zeros((n,10)); np.evaluate(a)
    t=time.perf_counter()
    for b in range(n):
        a[b] = a[b] + 1
    t1=time.perf_counter()
    s=str(a)
    t2=time.perf_counter()
    return t1-t, t2-t1
run(1000)
print("kernel", run(100_000), "array", runarr(100_000))
print("kernel", run(100_000), "array", runarr(100_000), np.stats())
if len(sys.argv)>1:
    cProfile.run("run(20000)", sort="tottime")
