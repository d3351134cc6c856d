"""The daemon: an optional process that keeps index and context fresh while people work."""
