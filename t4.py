import clfuse as np, numpy, time
import clfuse
def bench(name, f, reps=7):
    f(); f()
    ts=[]
    for _ in range(reps):
        t=time.perf_counter(); f(); ts.append(time.perf_counter()-t)
    print(f"{name:30s} {min(ts)*1e3:8.3f} ms")
n=1<<24
x=np.ones(n); y=np.ones(n); z=np.ones(n)
@clfuse.kernel
def triad(i,a,x,y,z):
    z[i]=x[i]+a*y[i]
def k():
    triad(n,3.0,x,y,z); np.evaluate(z); np.synchronize()
def a():
    z[:]=x+3.0*y; np.evaluate(z); np.synchronize()
bench("triad kernel",k); bench("triad array",a)
@clfuse.kernel
def dot(i,x,y): return x[i]*y[i]
bench("dot kernel",lambda: float(dot.reduce(n,x,y))); bench("dot array",lambda: float((x*y).sum()))
m=2000
g=np.ones((m,m)); h=np.ones((m,m))
@clfuse.kernel
def jac(i,j,g,h):
    if 0 < i < g.shape[0]-1 and 0 < j < g.shape[1]-1:
        h[i,j]=0.25*(g[i-1,j]+g[i+1,j]+g[i,j-1]+g[i,j+1])
def k():
    jac((m,m),g,h); np.evaluate(h); np.synchronize()
def a():
    h[1:-1,1:-1]=0.25*(g[:-2,1:-1]+g[2:,1:-1]+g[1:-1,:-2]+g[1:-1,2:]); np.evaluate(h); np.synchronize()
bench("jacobi kernel",k); bench("jacobi array",a)
@clfuse.kernel
def jac0(i,j,g,h):
    l = g[i-1,j] if i > 0 else 0.0
    r = g[i+1,j] if i < g.shape[0]-1 else 0.0
    u = g[i,j-1] if j > 0 else 0.0
    d = g[i,j+1] if j < g.shape[1]-1 else 0.0
    h[i,j]=0.25*(l+r+u+d)
def k():
    jac0((m,m),g,h); np.evaluate(h); np.synchronize()
bench("jacobi zero boundary",k)
jac0((m,m),g,h); print(np.explain(h))
@clfuse.kernel
def tr(i,j,g,h): h[j,i]=g[i,j]
def k():
    tr((m,m),g,h); np.evaluate(h); np.synchronize()
def a():
    h[:]=g.T; np.evaluate(h); np.synchronize()
bench("transpose kernel",k); bench("transpose array",a)
idx=np.asarray(numpy.random.default_rng(0).integers(0,n,n//4).astype(numpy.int32)); w=np.zeros(n//4)
@clfuse.kernel
def gat(i,x,idx,w): w[i]=x[idx[i]]
def k():
    gat(n//4,x,idx,w); np.evaluate(w); np.synchronize()
def a():
    w[:]=x[idx]; np.evaluate(w); np.synchronize()
bench("gather kernel",k); bench("gather array",a)
t=np.zeros(1<<20,dtype=numpy.uint64)
@clfuse.kernel
def gups(i,t):
    r = clfuse.philox.bits(1,i)
    clfuse.atomic.xor(t, int(r % numpy.uint64(1<<20)), r)
def k():
    gups(1<<20,t); np.evaluate(t); np.synchronize()
bench("gups",k)
@clfuse.kernel
def yax(i,y,A,x):
    s = 0.0
    for j in range(A.shape[1]):
        s += A[i,j]*x[j]
    return y[i]*s
yy=np.ones(m)
bench("y'Ax kernel",lambda: float(yax.reduce(m,yy,g,yy))); bench("y'Ax array",lambda: float((yy*(g*yy).sum(1)).sum()))
