"""Dataset runs on several devices and machines, with Ray.

    cluster_options.py  which cluster, how many workers, resources per worker, its devices
    run_session.py      runs a session on a cluster: starts workers, gives tasks out, saves rows
    workers.py          the workers as shown to users and in rows, and which gets which task
    ray_link.py         starts the process that uses Ray, and exchanges JSON lines with it
    ray_process.py      that process: connects to Ray, starts actors, passes calls and answers
    worker.py           the code inside an actor: one device, one model at a time

Only running ray_process.py needs Ray; importing these modules does not.  Only the driver writes
rows, through the store's writer.
"""
