"""Converts models of other projects to runs and back. `formats` reads and writes the files, `families` know their names and configs."""
