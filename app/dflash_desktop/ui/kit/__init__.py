"""Theme, icons and shared widgets; nothing in here knows about models or chats."""
