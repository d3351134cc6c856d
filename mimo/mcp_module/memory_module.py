"""Runs one invocation of this module: `python memory_module.py samples/test_invocation.json`."""

from __future__ import annotations

import sys
from pathlib import Path

from mimo.module.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], manifest=Path(__file__).with_name("memory-tool.module.json")))
