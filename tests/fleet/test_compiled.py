"""The compiled CPU path: bit-identical when repeated, and the eager path's equal."""

import numpy as np
import pytest
import torch

from groklab.fleet.checkpoint import FleetState
from groklab.fleet.planner import cpu_compiler, plan_fleets
from groklab.fleet.run import Run
from groklab.fleet.train import train_fleet
from groklab.models import DecoderConfig, LSTMConfig, MLPConfig, ModelConfig

pytestmark = [
    pytest.mark.slow,  # compiling takes a minute, an LSTM's unrolled positions two
    pytest.mark.timeout(1200),
    pytest.mark.skipif(cpu_compiler() is None, reason="no C++ compiler with Python's headers"),
]


class Kept:
    """Keeps the last state."""

    def __init__(self) -> None:
        self.states: list[FleetState] = []

    def evaluated(self, *_: object) -> None: ...

    def ended(self, *_: object) -> None: ...

    def checkpoint(self, state: FleetState) -> None:
        self.states.append(state)


MODELS: dict[str, ModelConfig] = {
    "decoder": DecoderConfig(d_model=32, num_heads=4),
    "lstm": LSTMConfig(d_model=16, d_hidden=24),
    "mlp": MLPConfig(d_model=16, d_hidden=40),
    "one-hot mlp": MLPConfig(inputs="one_hot", d_hidden=40),
}


def final_weights(model: ModelConfig, compiled: bool, precision: str) -> torch.Tensor:
    runs = [
        Run(task="x_plus_y mod 23", model=model, batch_size=128, steps=20, seed=seed, precision=precision)  # type: ignore[arg-type]
        for seed in range(5)
    ]
    (plan,) = plan_fleets(runs, "cpu", compiled=compiled)
    kept = Kept()
    train_fleet(plan, runs, kept)
    return kept.states[-1].tensors["theta"]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_compiled_training_repeats_bit_by_bit_and_is_the_eager_one(model: ModelConfig) -> None:
    torch.set_num_threads(2)  # sums made by several threads are what could differ
    try:
        first, again = final_weights(model, True, "float64"), final_weights(model, True, "float64")
        eager = final_weights(model, False, "float64")
    finally:
        torch.set_num_threads(1)
    assert torch.equal(first, again)
    np.testing.assert_allclose(first, eager, rtol=0, atol=1e-9)
