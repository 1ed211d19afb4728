"""What a run survives: every fault is made for real, to nano runs in processes of their own where that matters.

The short suite makes the faults of one process to one run in turn (test_alone), and those of several processes to another (test_gang).
With --full each is also made alone, at every stage and as often as the table says:

T1 kill -9 at any moment, T17 useful steps of all steps     test_killed
T2 kill -9 inside the commit of a checkpoint                test_commit
T3 kill -9 of one of several processes                      test_gang_killed, test_processes, test_meeting (who survives ends by itself)
T4 SIGTERM to one process, T5 a second signal in the save   test_gang_stopped
T6 a disk that takes no checkpoint                          test_disk
T7 a newest checkpoint that is damaged                      test_damaged
T8 other devices and processes                              test_elastic, with --full alone; tests/training/test_loop.py (devices)
T9 numbers that are not finite                              test_numbers
T10 the directory of another run                            test_other_run
T11 a process that stands still                             test_still, test_meeting (barriers, and saves)
T12 shards that are missing or damaged                      test_input
T13 evaluations                                             test_evaluation, test_processes (rows that processes cannot share evenly)
T14 directories that cannot be written to                   test_directories
T15 one seed                                                test_same_seed, with --full alone; test_alone, test_gang (bit for bit)
T16 a crash at step 0, always; the launcher                 test_launcher
What checksums and a start cost                             test_cost, with --full alone

Not here: errors of object stores, for checkpoints are on file systems; a process that reads data and is killed, for `pretrain` reads in a
thread (`jaxenc data` has workers: tests/data/test_workers.py); shards that one host of several lacks, for there is one host.
`bash tests/faults/run.sh` prints one line of a table for each; on an accelerator `python -m tests.faults.device` does T1 and T4.
"""
