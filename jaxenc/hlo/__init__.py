"""What a compiled program does, read from the text of its HLO."""
