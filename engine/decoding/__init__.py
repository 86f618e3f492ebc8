"""Stage 4: prefill, then one token at a time; eager, lean, compiled or batched."""
