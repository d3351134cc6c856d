"""One folder for each feature: its model, storage, commands and output."""
