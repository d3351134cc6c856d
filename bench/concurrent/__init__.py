"""Lets many processes work on one project at once, and checks the history of their operations.

    python -m bench.concurrent [--processes N] [--operations N] [--seed N] [--write PAGE]

Command lines, MCP servers over pipes, clients of one HTTP server and the daemon share a project.
Each operation is recorded with the times before and after it (CLOCK_MONOTONIC), its arguments and
its answer. `linearizable.py` then looks for an order of the operations on each memory, value and
topic in which every answer is right: an operation happens at one moment between its start and its
end. One that failed did not happen; one whose process was killed may have. At the end, the index is
compared with a new one, and the records, approvals and decisions are checked.
"""
