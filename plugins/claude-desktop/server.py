"""Starts the MCP server of mind; `scripts/mcpb.py` puts this file into the bundle."""

from __future__ import annotations

import sys

from mimo.__main__ import main

sys.argv[1:1] = ["mcp"]
sys.exit(main())
