"""`python -m goodgain` is the goodgain command."""

from goodgain.cli import main

main()
