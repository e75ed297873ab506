"""Model text to thoughts, answer and tool calls, however the text was cut."""
