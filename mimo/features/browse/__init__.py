"""The browser of memories in the terminal."""
