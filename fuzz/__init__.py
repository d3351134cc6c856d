"""Fuzzing: random bytes, guided by coverage, for every parser.

`make fuzz` runs the targets under atheris. What it finds is kept in `regressions/TARGET/`, and the
tests try it again.
"""
