"""Data on the disk and from outside: the door for foreign data, small state files, and caches."""
