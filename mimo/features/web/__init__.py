"""The viewer: memories in a browser, served on this machine or written into one file."""
