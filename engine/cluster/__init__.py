"""A dataset run on many devices and machines, on Ray.

    options.py       which cluster, how many workers, what each of them takes
    executor.py      engine.benchmark's executor: hands tasks out, keeps the rows that come back
    agenda.py        what there is to do, and what nobody can
    dispatch.py      which worker gets which task; no clock, no process, no Ray
    crew.py          the workers as people and rows see them: node, device, state, rate
    inspection.py    whether a node has the same code, checkpoints and samples as the driver
    link.py          the process that talks to Ray, and the lines that go to it and come from it
    folders.py       where that process has its log, and a Ray of its own its files
    hub.py           that process: an actor on each device, calls and answers
    joining.py       how it comes to a Ray
    worker.py        what runs in an actor: one device, one model at a time
    parcels.py       plans and samples as JSON, for the way to an actor and back

Boundary: importing any of these but running hub.py needs no Ray.  Rows are written by the driver
alone, through the store's writer.
"""
