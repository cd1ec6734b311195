"""The runtime: all that talks to OpenCL. Devices, buffers, programs, launches.

No module here imports pyopencl when it is imported: the first use of a device does.
"""
