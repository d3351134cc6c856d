"""Long runs: real processes answer many requests or see many changes, and must not grow.

    python -m bench.soak daemon --bursts 100000
    python -m bench.soak stdio --requests 1000000
    python -m bench.soak http --requests 1000000

A run is divided into ten parts of equal length. Memory, descriptors, threads, latency, processor
time and disk usage of the last part are compared with those of the first; the exit status is 1 if
they grew by more than the tolerance, or the daemon does not index a burst in time. A run that is
out of `--minutes` ends early; the table has its complete parts.
"""
