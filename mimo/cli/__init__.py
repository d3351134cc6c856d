"""The terminal: the command set as `mind …`."""
