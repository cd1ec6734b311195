"""The module names that pickles of version 0.1 hold, and the modules that they mean now."""

import sys

from .functions.math import ufunc
from .functions.random import bits, generator, module
from .interop import protocols

MOVED = {
    "protocols": protocols,
    "random": module,
    "random_bits": bits,
    "random_generator": generator,
    "ufunc": ufunc,
}
for _name, _module in MOVED.items():
    sys.modules[f"{__name__}.{_name}"] = _module
