"""Single memories: add, show, edit, list, remove, undo."""
