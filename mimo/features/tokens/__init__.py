"""The tokens with which the users of a team's server send requests to it."""
