"""`python -m groklab.cli` is `groklab`."""

from groklab.cli import main

main()
