"""DFlash Desktop: chat with local models, decoded by our own DFlash engine."""

__version__ = "0.1.0"
