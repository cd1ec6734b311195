"""``python -m clfuse doctor --check``: whether clfuse computes rightly on this machine.

`report` runs the parts (`values`, `faults`, `interrupts`, `memory`, `accuracy`), each in a process
of its own, because a driver may end it.
"""
