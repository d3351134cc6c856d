"""`mind scan`: secrets in existing files."""
