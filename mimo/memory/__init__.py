"""Memories: the model, ids, files, merging, and the texts that memories are read from; pure."""
