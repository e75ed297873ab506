"""Decoding as the app sees it; no Qt, no HTTP. The lane, tokenizer, prompts, metrics, devices, pairs."""
