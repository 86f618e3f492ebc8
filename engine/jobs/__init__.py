"""The queue of the device, and the long jobs whose progress pages and commands show."""
