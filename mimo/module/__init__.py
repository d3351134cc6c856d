"""The memory for programs: our module for a host to call, and a host's side of all modules.

from mimo.module import MemoryModule
answer = MemoryModule().invoke("recall_memory", {"query": "why JWT?"})

from mimo.module import discover
host = discover(Path("."))
result = host.dispatch("recall_memory", {"query": "why JWT?"})
"""

from mimo.module.host import Host, ToolResult, discover
from mimo.module.memory import MemoryModule, invoke

__all__ = ["Host", "MemoryModule", "ToolResult", "discover", "invoke"]
