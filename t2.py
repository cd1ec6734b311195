import clfuse as np, numpy, math
import clfuse
@clfuse.device_function
def f(x, k):
    if k > 3:
        return x * 2
    return x + k
@clfuse.kernel
def scatter(i, x, idx, y):
    y[idx[i]] = f(x[i], i)
x=np.arange(5.0); idx=np.asarray(numpy.array([4,3,2,1,0])); y=np.zeros(5)
scatter(5,x,idx,y)
print(scatter.source(5,x,idx,y))
print(y, scatter.route(5,x,idx,y))
print(np.explain(y+1))
@clfuse.kernel
def collatz(i, y):
    n = i + 1
    k = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3*n+1
        k += 1
        if k > 1000:
            break
    y[i] = k
y=np.zeros(20,dtype=numpy.int32)
collatz(20,y); 
yp=numpy.zeros(20,dtype=numpy.int32); collatz.python(20,yp); print((np.asnumpy(y)==yp).all(), yp)
@clfuse.kernel
def hist(i, x, h):
    clfuse.atomic.add(h, int(x[i]) % 3, 1)
h=np.zeros(3,dtype=numpy.int64); hist(5,x,h); print(h)
@clfuse.kernel(group=4)
def rev(i, x, y):
    t = clfuse.group.local_array(4, numpy.float64)
    k = clfuse.group.local_id()
    t[k] = x[i]
    clfuse.group.barrier()
    y[i] = t[clfuse.group.size() - 1 - k]
x=np.arange(8.0); y=np.zeros(8); rev(8,x,y); print(y)
yp=numpy.zeros(8); rev.python(8,np.asnumpy(x),yp); print(yp)
@clfuse.kernel
def mand(i, j):
    c = complex(-2 + 3*i/8, -1 + 2*j/8)
    z = 0j
    for k in range(200):
        z = z*z + c
        if abs(z) > 2:
            return k
    return 200
print(mand.reduce((8,8)), mand.python((8,8)).sum())
@clfuse.kernel
def rnd(i, s):
    return clfuse.philox.uniform(s, i)
print(rnd.reduce(1000, 7)/1000, rnd.python(1000,7).mean())
