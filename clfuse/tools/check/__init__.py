"""Whether clfuse computes rightly on this machine: ``python -m clfuse doctor --check``.

`report` runs the parts (`values`, `faults`, `interrupts`, `memory`, `accuracy`), each in a process
of its own, because a driver may end it. Tests and the table of the guide use the pieces, too.
"""
