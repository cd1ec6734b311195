"""Statements that write, alias and index, each followed by a look at every array.

`test_api_expressions` says how they run.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.device.functions.test_api_expressions import check, statement_outcome

LINES = {
    "assignment": r"""
a[0]=5
a[0]=[1,2,3,4]
a[:,0]=b[:,1]
a[...]=b
a[()]=1
a[1:,1:]=a[:-1,:-1]
a[::-1]=a
a[:]=a.T[:3,:3]
a[0]=[1,2]
a[0,0]=[1]
a[0,0]=[1,2]
a[5]=1
a[0,0,0]=1
a[0]=c
a[0,0]=1j
a[0,0]='3.5'
a[0,0]='x'
u[0]=300
u[0]=-1
u[:]=[1,2,300]
u[0]=1.7
u[:]=f[:3]
b[0,0]=s
b[0]=a[0]
b[0]=a[0]*1.5
t[0]=5
t[:]=[0,2,0,-1]
""",
    "views as another dtype": r"""
c[0]=5
c.real=1
c.imag=a[0]
c.real[1:]=7
c.imag[::2]*=3
c.real+=c.imag
a.imag=3
a.real=b
x=c.view('f8');x[1]=9;r=x
x=c.view('f8');x+=1
x=a.view('i8');x[0]=1
x=b.view('i4');x[0,0]=7;r=x
x=b.view('u1');r=x.shape
x=u.view('i1');x-=1
x=t.view('u1');x[1]=1
x=a[:,::2].view('f4')
x=a.T.view('i8');r=x
x=f.view('i4');x[0]=0
x=m.arange(8,dtype='u1').view('u4');x[0]=1;r=x.view('u1')
x=m.arange(16,dtype='u1').view('c16');r=x
x=h.view('u2');x[0]=15360
x=m.zeros(4,'f8').view('c16');x[0]=1+2j;r=x.view('f8')
x=m.zeros((2,3),'i4');x.shape=(3,2);r=x
x=a.T;x.shape=(12,)
x=m.zeros(4,'f4');x.dtype='i4';r=x
""",
    "views written to": r"""
x=a.reshape(4,3);x[0]=9
x=a.ravel();x[0]=9
x=a.T.ravel();x[0]=9;r=x
x=a.flatten();x[0]=9
x=a.T;x[0]=9
x=a[::2,::-1];x+=1
x=a[1];a[1]=0;r=x
x=a[1,1];a[1,1]=0;r=x
x=a[1,1,...];a[1,1]=0;r=x
x=a.copy();a[:]=0;r=x
x=a+0;a[:]=0;r=x
x=m.asarray(a);x[0]=0
x=m.array(a);x[0]=0
x=a.diagonal();x[0]=1
x=m.diag(a);x[0]=1
x=m.broadcast_to(a[0],(2,4));x[0]=1
x,y=m.broadcast_arrays(a,1);x[0]=7
x=a.swapaxes(0,1);x[0]=-1
x=m.expand_dims(a,0);x[0,0]=-1
x=a[None];x[0,0]=-1
x=m.flip(a);x[0]=-1
x=m.split(a,3)[1];x[:]=-1
x=m.atleast_3d(a);x[0]=-1
x=m.rot90(a);x[0]=-1
x=m.moveaxis(a,0,1);x[0]=-1
x=a.squeeze();x[0]=-1
x=a.astype(float,copy=False);x[0]=-1
x=a.astype(float);x[0]=-1
x=a.flat;x[3]=99
a.flat[[0,1]]=[7,8]
a.partition(m.array([],'i2'))
m.vecdot(k[0],k[0],out=a[0,:3])
m.vecdot(k[0],k[0],a[1,:3])
m.matvec(a,a[0],out=b[:,0])
a.flat[()]=1
a.flat[...]=[1,2,3]
a.flat[True]=9
a.flat[False]=9
a.flat[[[0,1],[2,3]]]=[7,8,9]
a.flat[None]=1
a.flat[1,2]=3
a.flat[2]=[5,6]
a.flat[[True]*12]=1
a.flat[a>5]=[1,2]
a.T.flat[[1.0,2.0]]=20
a[Index(([1],[2]))]=7
a[Gives(m.array([2,0]))]=7
a[0]=Gives(m.arange(4))
a.flat=3
a.flat=[1,2,3]
x=a.T.flat;x[1]=99;r=list(x)
""",
    "in place": r"""
a+=1
a+=b
b+=a
b+=1.5
b/=2
b//=2
u+=300
u+=m.int64(5)
u*=2
u-=m.array([1,2,3])
a+=[1,2,3,4]
a+=c
c+=a[0]
t&=False
t|=[0,1,0,1]
t^=t
t+=t
t+=1
f**=2
b**=2
b<<=1
b%=3
a@=m.eye(4)
b@=m.eye(4)
a+=a.T
x=a[:1];x+=a[1:2]
a[1:]+=a[:-1]
a[:,1:]-=a[:,:-1]
""",
    "indices written to": r"""
a[a>3]=0
a[a>3]=b[a>3]
a[a>3]+=1
a[b<0]=m.nan
a[[0,2]]=1
a[[0,0],[1,1]]=[5,6]
a[[0,1]]+=1
a[m.array([True,False,True])]=9
a[m.array([True,False,True])]=[1,2,3,4]
a[m.array([True,False])]=9
a[b>0]=[1,2]
a[m.array([0,1]),1:3]=7
a[[5]]=1
a[1.5]=1
a['x']=1
""",
    "indices": r"""
r=a[[0,2]]
r=a[[0,2],[1,3]]
r=a[m.array([[0,1],[1,0]])]
r=a[:,[1,1]]
r=a[a>3]
r=a[b>0,...]
r=a[t[:3]]
r=a[:,t]
r=a[True]
r=a[False]
r=a[None,a>3]
r=a[m.array(1)]
r=a[m.array(1),m.array(2)]
r=a[(0,1)]
r=a[[True,False,True]]
r=a[[1.0]]
r=a[[5]]
r=a[[]]
r=a[b[0,0]]
r=a[b[0,0]:b[0,2]]
r=a[m.int8(1)]
r=a[m.True_]
r=k[...,1]
r=k[:,None,1,...,None]
r=k[...,...]
r=k[1,2,3,4]
r=k[1,2]
r=k[-1,:,::-2]
r=k[5:1]
r=k[1:5:0]
r=k[0][1][2]
""",
    "methods and functions that write": r"""
x=a.copy();x.fill(3);r=x
a.fill([1,2])
a.fill(s)
a.sort()
a[:, ::-1].sort()
b.sort(axis=0)
x=m.array([3,1,2]);x.sort();r=x
x=m.array([3,1,2]);x.partition(1);r=x[1]
b.put([0,1],[9,8])
a.resize(2,2);r=a
x=m.arange(3);x.resize(5);r=x
x=a[1:];x.resize(2,2)
m.put(a,[0,1],9)
m.place(b,b>2,[0])
m.putmask(b,b>2,0)
m.copyto(a,b)
m.copyto(b,a)
m.copyto(a,1,where=b>0)
m.copyto(b,2.5)
m.copyto(u,300)
m.copyto(a,[1,2,3,4])
m.copyto(a,[1,2])
m.fill_diagonal(a,9)
m.put_along_axis(b,m.array([[0],[1],[2]]),99,1)
m.nan_to_num(f,copy=False)
x=m.sum(a,0,out=a[0])
x=m.cumsum(b,0,out=b)
x=m.clip(a,1,3,out=a)
x=m.round(a,out=a)
x=m.concatenate([a,a],out=m.zeros((6,4)));r=x
x=m.take(a,[0],0,out=m.zeros((1,4)));r=x
""",
    "read-only": r"""
a.flags.writeable=False;a[0]=1
a.setflags(write=False);a+=1
a.flags.writeable=False;x=a[1:];x[0]=1
a.flags.writeable=False;a.flags.writeable=True;a[0]=1
a.flags.writeable=False;x=a+1;x[0]=5;r=x
a.flags['WRITEABLE']=False;a[0]=1
x=m.broadcast_to(a[0],(2,4));x.flags.writeable=True
del a[0]
""",
    "scalars and copies": r"""
x=s;s+=1;r=x
x=z;z+=1;r=x
x=s;s*=2;r=(x,s)
x=a.max();x/=2;r=x
x=b.max();x/=2;r=x
x=b.sum();x+=0.5;r=x
total=0;exec("for i in range(3): total+=a[i].sum()");r=total
z[...]=4
z[()]=4
z[0]=4
z+=a
z+=m.array([1.0])
x=m.array(1);x+=1;r=x
import copy;x=copy.copy(a);x[0]=0;r=x
import copy;x=copy.deepcopy([a,a]);r=x[0] is x[1]
import pickle;r=pickle.loads(pickle.dumps(a[::2].T))
import pickle;r=pickle.loads(pickle.dumps(s))
import copy;r=copy.copy(s)
x=m.ndarray((2,3));r=x.shape
x=m.ndarray((2,),'i4',b'12345678');r=x
""",
    "methods": r"""
r=m.add.reduce([a,b])
r=[m.add(a,1),m.sin(a)]
r=a.nonzero()
r=a.searchsorted(3)
r=a.argsort(1)
r=b.take([0,1])
r=b.compress([1,0,1],axis=0)
r=b.choose([1,2,3])
r=b.cumsum()
r=b.cumprod(1)
r=a.byteswap()
r=b.byteswap(True)
r=a.repeat(2)
r=a.trace()
r=a.dot(b.T)
r=a.conj() is a
r=a.conjugate()
r=c.conj()
r=a.getfield('f4')
r=a.astype('U5')
r=a.astype(object)
r=a.astype('i4',casting='safe')
r=a.astype('f4',casting='same_kind')
r=c.astype('f4')
r=f.astype('i4')[:3]
r=b.astype(bool)
r=c.astype(bool)
r=a.astype(None)
r=b.astype('f2')
r=a.astype('>f8').dtype.str
r=a.tolist()
r=k[0,:,0].tolist()
r=m.from_dlpack(a)
P=m.random.PCG64;r=m.random.Generator(P(3)).random(4)
P=m.random.PCG64;r=m.random.default_rng(P(3)).normal(size=(2,2))
P=m.random.PCG64;r=m.random.Generator(P(3)).integers(0,10,5)
P=m.random.PCG64;x=m.arange(5);m.random.Generator(P(3)).shuffle(x);r=x
P=m.random.PCG64;r=m.random.Generator(P(3)).choice(m.arange(10),3)
P=m.random.PCG64;r=m.random.Generator(P(3)).permutation(5)
M=m.random.MT19937;r=m.random.RandomState(M(3)).randn(2)
M=m.random.MT19937;r=m.random.RandomState(M(3)).randint(10)
""",
}


@pytest.mark.parametrize("group", LINES)
def test_statements_leave_what_numpy_leaves(group: str, xp: ModuleType) -> None:
    check(LINES[group].split("\n")[1:-1], xp, statement_outcome)
