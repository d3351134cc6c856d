"""Lets writing commands fail at each of their writing calls, and checks what is left.

    python -m bench.torture [--minutes N] [--seed N] [--points N] [--only COMMAND]

A shim in C (shim.c, loaded with LD_PRELOAD) counts the calls that write below a scratch folder,
in `mind` and in the git that it runs. At the n-th one it kills all of them, cuts a write short, or
lets the call fail with an error. After each run the project is examined without the shim: a command
that ended with 0 did all of its work; any other left every file as it was or complete; approvals,
the record of calls and the index are right; the next command works.

This process imports mind once and forks for each run and for each examination. Points that leave
the same files share an examination, and `--jobs` divides the points among processes.
"""
