"""`mind graph`: the links between memories."""
