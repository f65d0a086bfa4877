"""`python -m pilotage` is the same as `pilotage`."""

from pilotage.cli.main import main

main()
