"""Procedures: state machines in Markdown, read, checked and interpreted without any I/O."""
