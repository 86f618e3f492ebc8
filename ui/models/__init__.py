"""The parts of the Models page.

    card_rows       a model's card as rows of text
    model_actions   load, unload, hash: buttons, and the progress of the job
    memory_bars     the memory of each device
    cache_view      the feature cache: its entries, and clearing it after a confirmation
    model_markup    rows and bars as HTML

Boundary: shows the state of registry, queue, devices and feature cache.  Only jobs of the engine
change it, except that the cache is cleared directly.
"""
