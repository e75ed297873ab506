"""Conversations and their store. No Qt, no engine: what is kept, how it is found again, and how it leaves as a file."""
