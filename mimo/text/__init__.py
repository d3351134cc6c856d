"""Pure text tools: cleaning, tokens, sentences and lists, calendar names, foreign patterns."""
