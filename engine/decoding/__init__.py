"""Stage 4: prefill, then one token at a time; eager, lean, compiled or batched.

Boundary: takes a language model and its inputs; knows no families, pictures or files.
"""
