"""Stage 4: prefill and one token at a time, eager, lean, compiled or for several prompts.

Boundary: takes a language model and its inputs; knows no family, no picture and no file.
"""
