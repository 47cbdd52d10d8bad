"""``python -m benchmarks NAME``: comparisons with other tools, the speedrun and the ablations, from a checkout."""

from benchmarks.commands import main

if __name__ == "__main__":
    main()
