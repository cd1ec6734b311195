import clfuse as np, numpy, math
import clfuse
@clfuse.kernel
def axpy(i, a, x, y):
    y[i] = a * x[i] + y[i]
n=1000
x=np.arange(float(n)); y=np.ones(n)
axpy(n,2.0,x,y)
print(y[:4], axpy.route(n,2.0,x,y))
axpy(n,2.0,x,y)
axpy(n,3.0,x,y)
assert (np.asnumpy(y)==1+7*numpy.arange(n)).all()
@clfuse.kernel
def jac(i,j,g,h):
    if 0 < i < g.shape[0]-1 and 0 < j < g.shape[1]-1:
        h[i,j]=0.25*(g[i-1,j]+g[i+1,j]+g[i,j-1]+g[i,j+1])
    else:
        h[i,j]=g[i,j]
g=np.arange(30.0).reshape(5,6)**2; h=np.zeros((5,6))
jac((5,6),g,h); 
hp=numpy.zeros((5,6)); jac.python((5,6),np.asnumpy(g),hp)
print(np.asnumpy(h)-hp)
@clfuse.kernel
def dot(i,x,y):
    return x[i]*y[i]
print(dot.reduce(n,x,y), dot.scan(5,x,y), dot.scan(5,x,y,exclusive=True), dot.reduce(n,x,y,op="argmax"))
@clfuse.kernel
def diff(i,x,y):
    left = x[i-1] if i > 0 else 0.0
    y[i] = x[i]-left
z=np.zeros(n)
diff(n,x,z); print(z[:5], diff.route(n,x,z))
@clfuse.kernel
def gat(i,x,idx,y):
    y[i] = math.sqrt(x[idx[i]]) if idx[i] >= 0 else -1
idx=np.asarray(numpy.array([3,-1,7,100000]))
z=np.zeros(4); gat(4,x,idx,z); print(z)
@clfuse.kernel
def race(i,x):
    x[i]=x[i-1] if i>0 else 0.0
print(race.route(n,x))
for bad in ["x.append(3)","x[1:3]=0","print(i)","y=[1,2]","for a in x: pass","import os","y = lambda q: q"]:
    pass
