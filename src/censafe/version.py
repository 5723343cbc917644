"""The version of the package, for files and messages."""

__all__ = ["__version__"]

__version__ = "0.1.0"
