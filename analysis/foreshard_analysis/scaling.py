"""Speed by number of ranks, from the traces of several runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foreshard_analysis.summary import load_summary
from foreshard_analysis.trace_file import Trace


@dataclass(frozen=True)
class ScalingPoint:
    """One run."""

    world_size: int
    tokens_per_s: float
    """Of all ranks."""
    kind: str
    path: Path


def scaling_point(trace: Trace) -> ScalingPoint:
    speed = trace.info.tokens_per_step / load_summary(trace).step_time_s
    return ScalingPoint(trace.info.world_size, speed, trace.info.kind, trace.path)


def load_scaling(paths: Iterable[str | Path]) -> list[ScalingPoint]:
    """In order of ranks, predicted ones after measured ones."""
    points = []
    for path in paths:
        with Trace(path) as trace:
            points.append(scaling_point(trace))
    return sorted(points, key=lambda point: (point.kind, point.world_size))


def efficiency(points: Sequence[ScalingPoint]) -> list[float]:
    """Of each point, its speed over the one that the run of its kind with fewest ranks would have on so many."""
    fewest: dict[str, ScalingPoint] = {}
    for point in points:
        if point.kind not in fewest or point.world_size < fewest[point.kind].world_size:
            fewest[point.kind] = point
    return [point.tokens_per_s / ideal(fewest[point.kind], point.world_size) for point in points]


def ideal(base: ScalingPoint, world_size: float) -> float:
    """Tokens per second on so many ranks if each were as fast as one of `base`."""
    return base.tokens_per_s * world_size / base.world_size


def scaling_text(points: Sequence[ScalingPoint]) -> str:
    lines = [f"{'ranks':>7}{'tokens/s':>16}{'efficiency':>12}  kind       trace"]
    for point, part in zip(points, efficiency(points), strict=True):
        lines.append(
            f"{point.world_size:>7}{point.tokens_per_s:>16,.0f}{100 * part:>10.1f} %  {point.kind:<9}  {point.path}"
        )
    return "\n".join(lines)
