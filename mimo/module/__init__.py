"""The memory for programs: our module for a host to call, and a host's side of all modules.

`MemoryModule().invoke("recall_memory", {"query": …})` asks it;
`discover(root).dispatch("recall_memory", {"query": …})` finds it in `.mcp/modules/` first.
"""

from mimo.module.host import Host, ToolResult, discover
from mimo.module.memory import MemoryModule, invoke

__all__ = ["Host", "MemoryModule", "ToolResult", "discover", "invoke"]
