"""The strength of memories, which fades unless they are used or kept."""
