"""The chat page: messages, composer, and the conversation behind them."""
