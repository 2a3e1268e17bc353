"""Which of a fleet's checkpoints are kept."""

from dataclasses import dataclass

from groklab.checks import whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which checkpoints are kept: the last ones, and for good those of steps that someone wants to look into later.

    Training saves at those steps, too: every `every`, and at powers of two.
    """

    last: int = 2
    every: int | None = None
    powers_of_two: bool = False

    def __post_init__(self) -> None:
        whole("the number of last checkpoints to keep", self.last, low=1, high=10**6)
        if self.every is not None:
            whole("the distance of checkpoints to keep", self.every, low=1, high=10**9)

    def keeps(self, step: int) -> bool:
        """Whether the checkpoint of this step is kept for good."""
        power = self.powers_of_two and step > 0 and step & (step - 1) == 0
        return power or (self.every is not None and step % self.every == 0)

    def after(self, step: int) -> list[int]:
        """The next steps, behind this one, that are kept for good."""
        steps = [] if self.every is None else [(step // self.every + 1) * self.every]
        return [*steps, 1 << step.bit_length()] if self.powers_of_two else steps


LAST_TWO = Retention()
