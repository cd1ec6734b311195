"""Code generation: kernel records become OpenCL C. No other package imports Mako."""
