"""How a network adds: measures that need the logits of all pairs at once, of a model at some step.

They stand beside the curve's columns, since the key frequencies are the final model's: train, keep checkpoints on the
way, take the frequencies from the last, and measure each (`mechanism`).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from groklab.analysis.fourier import component_norms, cross_entropy, embedding_norms, excluded, gini, restricted
from groklab.errors import UsageError
from groklab.fleet.data import fleet_data, vocabulary_of
from groklab.fleet.rows import tokens
from groklab.fleet.run import Run

PAIRS_AT_ONCE = 4096


def table_logits(run: Run, model: nn.Module) -> npt.NDArray[np.float64]:
    """The logits of the run's answers for all pairs [p, p, n], in the model's precision."""
    vocabulary = vocabulary_of(run)
    p, n = vocabulary.operands, vocabulary.answers
    with torch.no_grad():
        some = [model(tokens(pairs, vocabulary)) for pairs in torch.arange(p * p).split(PAIRS_AT_ONCE)]
    return np.asarray(torch.cat(some)[:, :n].double().view(p, p, n).numpy())


def mechanism(run: Run, model: nn.Module, frequencies: Sequence[int]) -> dict[str, float]:
    """Restricted loss (all pairs, right answers), excluded loss (training pairs, the answers trained on), and Ginis.

    The Ginis are those of the Fourier components' lengths, of the logits and of the operands' embeddings; the latter
    only of a model that has an `embedding`.
    """
    if getattr(run.task, "operation", None) != "x_plus_y":
        raise UsageError(f"these measures are made for x_plus_y, whose circuit is known; the run's task is {run.task}")
    logits = table_logits(run, model)
    p, data = logits.shape[0], fleet_data([run])
    right = run.task.table().answers.numpy()  # type: ignore[union-attr]
    trained_on = data.answers[0].view(p, p).numpy()
    in_train = data.in_train[0].view(p, p).numpy()
    found = {
        "restricted_loss": float(cross_entropy(restricted(logits, frequencies), right).mean()),
        "excluded_loss": float(cross_entropy(excluded(logits, frequencies), trained_on)[in_train].mean()),
        "logit_gini": gini(component_norms(logits)),
    }
    weight = getattr(getattr(model, "embedding", None), "weight", None)
    if isinstance(weight, torch.Tensor):
        found["embedding_gini"] = gini(embedding_norms(weight.detach()[:p].double().numpy()))
    return found
