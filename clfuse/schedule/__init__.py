"""(graph, device traits) -> schedule of fused kernels; no OpenCL and no text here."""
