"""What may be wrong with the processes, devices, disks and data of a run before it starts: facts of each process, and what to do."""
