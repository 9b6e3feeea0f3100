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


def uncovered(intervals: Intervals, cover: Intervals) -> Intervals:
    """The moments of `intervals` that do not lie in `cover`."""
    edges = np.unique(np.concatenate([intervals.begins, intervals.ends, cover.begins, cover.ends]))
    begins, ends = edges[:-1], edges[1:]
    kept = _contain(intervals, begins) & ~_contain(cover, begins)
    return union(begins[kept], ends[kept])


def _contain(intervals: Intervals, moments: np.ndarray) -> np.ndarray:
    begun, ended = (np.searchsorted(edges, moments, side="right") for edges in (intervals.begins, intervals.ends))
    return begun > ended
