"""What a memory is and how it behaves: no files, no clock, no randomness."""
