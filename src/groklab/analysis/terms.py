"""The terms of a quadratic response surface, as columns and as the numbers that are read off them.

Factors are put on −1 to 1 over the range that was sampled; groups add up to zero (orthonormal contrasts), so that a
factor's own coefficients are those of the average group.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import linalg

from groklab.errors import UsageError

Floats = npt.NDArray[np.float64]
MIDDLE = "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`ranges` of each factor, those of them that are `curved`, and the groups; their order is that of the columns.

    A factor of which two values were sampled has no square: there is nothing between its ends to bend.
    """

    ranges: Mapping[str, tuple[float, float]]
    curved: tuple[str, ...]
    groups: tuple[str, ...]

    @classmethod
    def of(cls, points: Mapping[str, Floats], groups: Sequence[str]) -> "Terms":
        ranges = {name: (float(np.min(values)), float(np.max(values))) for name, values in points.items()}
        curved = tuple(name for name, values in points.items() if len(np.unique(values)) > 2)
        return cls(ranges=ranges, curved=curved, groups=tuple(dict.fromkeys(groups)))

    @property
    def width(self) -> int:
        """How many columns there are."""
        factors = len(self.ranges)
        plain = factors + len(self.curved) + factors * (factors - 1) // 2
        return 1 + plain + (len(self.groups) - 1) * (1 + factors)

    def columns(self, points: Mapping[str, Floats], groups: Sequence[str]) -> Floats:
        """One row a point: 1, groups, factors, their squares, their products, groups × factors."""
        scaled = {name: self._scaled(name, points) for name in self.ranges}
        contrasts = self._contrasts[[self._place(group) for group in groups]]
        blocks = [
            np.ones((len(contrasts), 1)),
            contrasts,
            *(x[:, None] for x in scaled.values()),
            *(scaled[name][:, None] ** 2 for name in self.curved),
            *((x * y)[:, None] for x, y in combinations(scaled.values(), 2)),
            *(x[:, None] * contrasts for x in scaled.values()),
        ]
        return np.concatenate(blocks, axis=1)

    def readings(self) -> Iterator[tuple[str, Floats]]:
        """Each number that is read off the coefficients: its name, and how it is put together from them."""
        unit, names = np.eye(self.width), list(self.ranges)
        yield MIDDLE, unit[0]
        for group, row in zip(self.groups, self._contrasts, strict=True):
            yield group, row @ unit[1 : len(self.groups)]
        plain = [*names, *(f"{name}²" for name in self.curved), *(f"{a} × {b}" for a, b in combinations(names, 2))]
        for place, name in enumerate(plain):
            yield name, unit[len(self.groups) + place]
        for name in names:
            for group, row in zip(self.groups, self._contrasts, strict=True):
                yield f"{group} × {name}", row @ unit[self.interaction(name)]

    def interaction(self, factor: str) -> slice:
        """The columns in which the groups' slopes along a factor part."""
        contrasts, factors, place = len(self.groups) - 1, len(self.ranges), list(self.ranges).index(factor)
        start = self.width - contrasts * (factors - place)
        return slice(start, start + contrasts)

    def slopes(self, factor: str) -> Floats:
        """One row a group: how its slope along a factor, in the middle of the others, is put together."""
        unit = np.eye(self.width)
        own = unit[len(self.groups) + list(self.ranges).index(factor)]
        return np.asarray(own + self._contrasts @ unit[self.interaction(factor)])

    @property
    def _contrasts(self) -> Floats:
        return np.asarray(linalg.helmert(len(self.groups)).T)

    def _scaled(self, name: str, points: Mapping[str, Floats]) -> Floats:
        low, high = self.ranges[name]
        return (2.0 * np.asarray(points[name], dtype=np.float64) - low - high) / (high - low)

    def _place(self, group: str) -> int:
        if group not in self.groups:
            raise UsageError(f"the surface has no group {group!r}; it was fitted to {', '.join(self.groups)}")
        return self.groups.index(group)
