"""`python -m runyard` is the command line."""

from runyard.cli.main import main

if __name__ == "__main__":
    main()
