"""A dataset run on many devices and machines, on Ray.

    cluster_options.py  which cluster, how many workers, what each of them takes
    run_session.py      a dataset run on a cluster: hands tasks out, keeps rows
    task_list.py        what there is to do, and what nobody can
    dispatch.py         which worker gets which task; no clock, no process, no Ray
    workers.py          the workers as people and rows see them: node, device, state, rate
    node_check.py       whether a node has the same code, checkpoints and samples as the driver
    ray_link.py         the process that talks to Ray, and the lines that go to it and come from it
    ray_folders.py      where that process keeps its log, and a temporary local Ray its files
    ray_process.py      that process: an actor on each device, calls and answers
    ray_connection.py   how it connects to Ray
    worker.py           what runs in an actor: one device, one model at a time
    serialization.py    plans and samples as JSON, for the way to an actor and back

Boundary: only running ray_process.py needs Ray; importing any of these does not.  Rows are written
by the driver alone, through the store's writer.
"""
