"""What a memory is and how its file reads: no files, no clock, no randomness."""
