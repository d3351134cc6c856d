"""The memory in git: sync, log, blame, diff, restore, earlier revisions, merging."""
