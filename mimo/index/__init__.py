"""The index: rebuildable at any time from the files."""

from __future__ import annotations

import os

# Before numpy is loaded, which only this package does, also by usearch and model2vec. The matrices
# are small, so that threads cost more than they give, and they would outlive a fork.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
