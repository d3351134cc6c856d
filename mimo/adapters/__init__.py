"""The memory for other frameworks, each in a module that imports its package.

`anthropic` has the memory tool for their tool runner, `langgraph` a store, and `openai_agents` a
session.
"""
