"""Models of other projects as runs of ours, and back: the files are of `formats`, what they mean is said by `families`."""
