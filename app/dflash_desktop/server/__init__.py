"""HTTP: other programs talk to the engine. No Qt."""
