"""Dataset runs on several devices and machines, with Ray.

Only running ray_process.py needs Ray; importing these modules does not.  Only the driver writes
rows, through the store's writer.
"""
