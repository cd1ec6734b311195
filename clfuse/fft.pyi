# Written by `python -m tests.stubs` with NumPy 2.4.
# ruff: noqa
"""NumPy's ``numpy.fft``, with clfuse's arrays."""

from numpy.fft import *
from numpy.fft import fft as fft
from numpy.fft import fft2 as fft2
from numpy.fft import fftfreq as fftfreq
from numpy.fft import fftn as fftn
from numpy.fft import fftshift as fftshift
from numpy.fft import hfft as hfft
from numpy.fft import ifft as ifft
from numpy.fft import ifft2 as ifft2
from numpy.fft import ifftn as ifftn
from numpy.fft import ifftshift as ifftshift
from numpy.fft import ihfft as ihfft
from numpy.fft import irfft as irfft
from numpy.fft import irfft2 as irfft2
from numpy.fft import irfftn as irfftn
from numpy.fft import rfft as rfft
from numpy.fft import rfft2 as rfft2
from numpy.fft import rfftfreq as rfftfreq
from numpy.fft import rfftn as rfftn
