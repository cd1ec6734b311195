"""How exact results are: functions, sums and arithmetic, on each runtime, for the guide.

    python -m tests.accuracy measure      # on the current device; figures-NAME.txt has them then
    python -m tests.accuracy sums         # errors of sums as multiples of NumPy's: sums-NAME.txt
    python -m tests.accuracy bits --count 100000000     # + - * / and sqrt against NumPy's bits
    python -m tests.accuracy write        # clfuse/guide/accuracy.md, from all the figures

Exact values are mpmath's, which is not among the development packages: ``pip install mpmath gmpy2``
(without gmpy2 it takes ten times as long). `tests.nodevice.test_accuracy_page` tells where page,
figures and op tables do not belong together.
"""
