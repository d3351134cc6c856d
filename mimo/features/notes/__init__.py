"""Single memories: storing, showing, changing, listing and removing them."""
