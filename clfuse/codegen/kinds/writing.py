"""What a kernel is written with: the device's traits, its arguments, and the template's context."""

from __future__ import annotations

from types import SimpleNamespace

from clfuse.codegen.arguments import Arguments
from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Preamble
from clfuse.dataclass import frozen
from clfuse.schedule.records import Kernel
from clfuse.target.traits import DeviceTraits


@frozen
class Writing:
    """One kernel that is being written.

    arguments: named in order of first use.
    preamble: what stands before the kernel.
    context: the names that the template sees as ``k``.
    """

    traits: DeviceTraits
    arguments: Arguments
    preamble: Preamble
    context: SimpleNamespace

    def body(self, kernel: Kernel) -> Body:
        """The lines inside of the kernel's loops."""
        return Body(kernel, self.traits, self.arguments, self.preamble)
