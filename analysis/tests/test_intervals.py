"""Sets of moments, beside counting every nanosecond."""

import numpy as np
import pytest

from foreshard_analysis.intervals import Intervals, uncovered, union


def moments(begins: np.ndarray, ends: np.ndarray) -> set[int]:
    return {moment for begin, end in zip(begins, ends, strict=True) for moment in range(begin, end)}


def moments_of(intervals: Intervals) -> set[int]:
    return moments(intervals.begins, intervals.ends)


@pytest.mark.parametrize("seed", range(20))
def test_sets_are_those_of_counting(seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b = (np.sort(random.integers(0, 60, (2, int(random.integers(0, 9)))), axis=0) for _ in range(2))
    of_a, of_b = moments(*a), moments(*b)
    left = uncovered(union(*a), union(*b))
    assert moments_of(union(*a)) == of_a and union(*a).length == len(of_a)
    assert moments_of(left) == of_a - of_b and left.length == len(of_a - of_b)


def test_touching_intervals_are_one() -> None:
    one = union(np.array([5, 0, 3]), np.array([7, 3, 5]))
    assert (one.begins.tolist(), one.ends.tolist()) == ([0], [7])


def test_nothing_has_no_length() -> None:
    nothing = union(np.empty(0, int), np.empty(0, int))
    assert nothing.length == 0 and uncovered(nothing, union(np.array([1]), np.array([4]))).length == 0
