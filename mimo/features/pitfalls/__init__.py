"""Edges: known pitfalls, where they apply, and checking changes against them."""
