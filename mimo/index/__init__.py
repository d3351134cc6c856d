"""The index: rebuildable at any time from the files."""
