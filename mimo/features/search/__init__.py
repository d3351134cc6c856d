"""Search by meaning and words, summaries of what is remembered, and lists by topic and time."""
