"""dflash.h in Python. Only the engine (and startup) may import this room."""
