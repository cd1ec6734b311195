"""All that talks to OpenCL: devices, buffers, programs, launches; `clfuse.evaluate` drives it.

Nothing in here touches pyopencl when it is imported: the first device that is asked for does.
"""
