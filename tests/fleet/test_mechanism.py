"""Measures of all pairs at once, on a module that adds by waves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from groklab.analysis.fourier import cross_entropy, embedding_norms, gini, key_frequencies
from groklab.errors import UsageError
from groklab.fleet.data import fleet_data, vocabulary_of
from groklab.fleet.mechanism import mechanism, table_logits
from groklab.fleet.run import Run
from groklab.models import Vocabulary, build

Tiny = Callable[..., Run]
SIZE = 10.0


class Waves(nn.Module):
    """Σ cos w_k(x + y − c), as `outputs="tokens"` would have it: more outputs than answers."""

    def __init__(self, vocabulary: Vocabulary, *frequencies: int) -> None:
        super().__init__()
        self.p, self.frequencies = vocabulary.answers, frequencies

    def forward(self, tokens: Tensor) -> Tensor:
        off = (tokens[:, 0] + tokens[:, 2])[:, None] - torch.arange(self.p + 2)
        return SIZE * sum(torch.cos(2 * torch.pi * k * off.double() / self.p) for k in self.frequencies)  # type: ignore[return-value]


def test_the_logits_of_all_pairs(tiny: Tiny) -> None:
    run = tiny()
    logits = table_logits(run, Waves(vocabulary_of(run), 2))
    assert logits.shape == (7, 7, 7) and logits.dtype == np.float64
    assert logits[3, 5, 1] == pytest.approx(SIZE) and (logits.argmax(-1) == np.add.outer(range(7), range(7)) % 7).all()


def test_an_adder_lives_from_its_frequencies(tiny: Tiny) -> None:
    run = tiny(label_noise=0.2)
    model = Waves(vocabulary_of(run), 1, 3)
    logits = table_logits(run, model)
    found = mechanism(run, model, key_frequencies(logits))
    right = run.task.table().answers.numpy()  # type: ignore[union-attr]
    assert found["restricted_loss"] == pytest.approx(cross_entropy(logits, right).mean())
    assert found["excluded_loss"] == pytest.approx(np.log(7))
    assert found.keys() == {"restricted_loss", "excluded_loss", "logit_gini"}
    part = mechanism(run, model, (1,))
    data = fleet_data([run])
    trained_on, mask = data.answers[0].view(7, 7).numpy(), data.in_train[0].view(7, 7).numpy()
    rest = table_logits(run, Waves(vocabulary_of(run), 3))
    assert part["excluded_loss"] == pytest.approx(cross_entropy(rest, trained_on)[mask].mean())


def test_a_model_with_an_embedding_has_its_gini_too(tiny: Tiny) -> None:
    run = tiny()
    model: Any = build(run.model, vocabulary_of(run))
    for parameter in model.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    wanted = gini(embedding_norms(model.embedding.weight[:7].detach().numpy()))
    assert mechanism(run, model, (1,))["embedding_gini"] == pytest.approx(wanted)


def test_another_task_is_refused(tiny: Tiny) -> None:
    run = tiny(task="x_minus_y mod 7")
    with pytest.raises(UsageError, match="made for x_plus_y"):
        mechanism(run, Waves(vocabulary_of(run), 1), (1,))
