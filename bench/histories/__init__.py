"""Random git histories of memories, and checks that no text is lost in them.

    python -m bench.histories [--histories N] [--seed N] [--jobs N] [--minutes N]

A history is a project in a real repository, in which Ann and Ben edit memories with mind and by
hand, and merge, rebase, cherry-pick, revert, stash and amend with the real git. Each word that they
write is unique, so that after each step the words that must be left are known: all of both sides,
except those that a side removed since the base.
"""
