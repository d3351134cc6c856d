"""The public paths of the adapters, which are in `mimo.extensions.adapters`."""
