"""Sets of moments, as arrays of begins and ends in integer nanoseconds."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Intervals:
    """Disjoint intervals [begin, end), in order."""

    begins: np.ndarray
    ends: np.ndarray

    @property
    def length(self) -> int:
        return int((self.ends - self.begins).sum())


def union(begins: np.ndarray, ends: np.ndarray) -> Intervals:
    """The moments that lie in any of [begin, end)."""
    if len(begins) == 0:
        return Intervals(np.empty(0, np.int64), np.empty(0, np.int64))
    order = np.argsort(begins, kind="stable")
    begins, furthest = np.asarray(begins)[order], np.maximum.accumulate(np.asarray(ends)[order])
    opens = np.append(True, begins[1:] > furthest[:-1])
    closes = np.append(opens[1:], True)
    return Intervals(begins[opens], furthest[closes])


def uncovered_length(intervals: Intervals, cover: Intervals) -> int:
    """Length of `intervals` outside of `cover`: |A ∪ B| − |B|."""
    both = union(np.append(intervals.begins, cover.begins), np.append(intervals.ends, cover.ends))
    return both.length - cover.length
