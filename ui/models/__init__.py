"""The parts of the Models page.

Boundary: what the registry, the queue, the device and the feature cache say, in words and bars;
what changes them is a job of the engine's, except for clearing the cache.

actions.py    load, unload, hash: buttons, and a job followed to its end
identity.py   a model's card as rows of words
memory.py     what each device holds
features.py   the feature cache: what is in it, and clearing it with a question first
markup.py     rows and bars as HTML
"""
