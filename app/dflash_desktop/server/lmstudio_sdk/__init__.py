"""LM Studio's SDK protocol: calls and streams as JSON packets over a WebSocket per subject."""
