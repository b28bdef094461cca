"""Arrays at chosen places in memory."""

import numpy as np

PAGE, READABLE = 4096, 16


def within_a_page(values):
    """A copy that lacuna uses where it is: an array with less than 16 bytes of its last page behind it is copied."""
    room = np.empty(values.size + 8, np.float32)
    end = (room.ctypes.data + 4 * values.size) % PAGE
    start = 0 if 0 < end <= PAGE - READABLE else 8
    array = room[start : start + values.size].reshape(values.shape)
    array[...] = values
    return array
