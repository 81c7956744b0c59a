"""Nightwarden runs workflows nobody watches."""

__version__ = "0.1.0"
