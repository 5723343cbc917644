"""The version of the package, for files and messages."""

__version__ = "0.1.0"
