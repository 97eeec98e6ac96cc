"""`python -m torture.command learn ...`: the command as it is, but that it is always noon."""

import sys

from torture.stories import said, stop_the_clock

if __name__ == "__main__":
    stop_the_clock()
    sys.exit(said(*sys.argv[1:]))
