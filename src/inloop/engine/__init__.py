"""Who samples: one protocol; the embedded transformers engine, vLLM, any chat API, a script."""
