"""A program: loads the library that it is given and lets a kernel compute, without torch and thus in no time."""

import sys
from ctypes import CDLL, c_double, c_float, c_int, c_int64

CHANNELS, SIDE = 16, 2


def main(library: str) -> None:
    maps, moments = (c_float * (CHANNELS * SIDE**2))(), (c_double * (2 * CHANNELS))()
    sizes = [c_int64(number) for number in (1, SIDE, SIDE, CHANNELS)]
    CDLL(library).channel_moments(maps, *sizes, moments, c_int(1))


if __name__ == "__main__":
    main(sys.argv[1])
