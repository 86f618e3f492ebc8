"""The machine that the engine runs on: device, memory, clocks, and how busy it is."""
