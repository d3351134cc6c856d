"""The memory for programs: the memory tool of Anthropic, and adapters for other frameworks.

`memory_tool` and `anthropic` have the memory tool, `langgraph` a store, and `openai_agents` a
session. Their public paths are `mimo.memory_tool` and the modules of `mimo.adapters`.
"""
