"""What a model has to know of its task: how many tokens come in and how many answers go out."""

from dataclasses import dataclass

SEQUENCE = 4  # tokens of an example: x o y =


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Operands are tokens 0 … n−1, `o` is token n and `=` token n+1."""

    operands: int
    answers: int

    @property
    def operator(self) -> int:
        return self.operands

    @property
    def equals(self) -> int:
        return self.operands + 1

    @property
    def tokens(self) -> int:
        return self.operands + 2
