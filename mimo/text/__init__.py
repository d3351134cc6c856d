"""Text tools that many modules use: cleaning, dates, words, patterns."""
