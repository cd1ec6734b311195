"""ElementwiseKernel, ReductionKernel and RawKernel: kernels written in OpenCL C."""
