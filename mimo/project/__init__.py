"""Files on disk: the only truth, and the only code that writes them."""
