"""How memories fade: their strength, and keeping them."""
