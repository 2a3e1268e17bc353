"""`groklab list`: what there is, by name, a line each."""

import sys
from collections.abc import Callable

from groklab.cli.columns import aligned

# The tables of these names stand in tasks/, models/ and models/initialization.py, behind torch, which takes a second
# to import; a test compares the names.
TASKS = {
    "x_plus_y": "x + y modulo 97",
    "x_minus_y": "x − y modulo 97",
    "x_div_y": "x / y modulo 97, for y from 1",
    "x_div_y_if_y_odd_else_x_minus_y": "x / y where y is odd, else x − y, modulo 97",
    "x2_plus_y2": "x² + y² modulo 97",
    "x2_plus_xy_plus_y2": "x² + xy + y² modulo 97",
    "x2_plus_xy_plus_y2_plus_x": "x² + xy + y² + x modulo 97",
    "x3_plus_xy": "x³ + xy modulo 97",
    "x3_plus_xy2_plus_y": "x³ + xy² + y modulo 97",
    "permutation": "x ∘ y for the 120 permutations of 5 things",
    "permutation_xyx_inverse": "x ∘ y ∘ x⁻¹ for the permutations of 5 things",
    "permutation_xyx": "x ∘ y ∘ x for the permutations of 5 things",
}
MODELS = {
    "decoder": "a causal Transformer, read at its last position",
    "lstm": "layers of long short-term memory, read at the last position",
    "mlp": "linear maps over both operands side by side, embedded or one-hot",
}
INITIALIZATIONS = {
    "default": "PyTorch's own",
    "xavier": "Xavier uniform: ±√(6 / (fan in + fan out))",
    "he": "He uniform: ±√(6 / fan in), biases zero",
    "orthogonal": "orthogonal matrices, biases zero",
    "kaiming_normal": "normal with variance 2 / fan in, biases zero",
    "uniform": "uniform in ±a, written uniform(a)",
    "normal": "normal with standard deviation s, written normal(s)",
}


def list_() -> None:
    """Name the studies and their parts, tasks, models and initializations.

    A study of your own is a YAML file that uses these names: groklab run FILE.yaml.
    """
    sections = {
        "studies": studies(),
        **{f"parts of {name} (--part)": questions for name, questions in parts().items()},
        "tasks (another size: 'x_plus_y mod 113', 'permutation of 4')": TASKS,
        "models": MODELS,
        "initializations": INITIALIZATIONS,
    }
    print("\n\n".join(f"{heading}\n{aligned(names.items())}" for heading, names in sections.items()))


def studies() -> dict[str, str]:
    """Every study with its question, which is the first line of its file."""
    from groklab.studies import STUDIES

    return {name: _question(study) for name, study in STUDIES.items()}


def parts() -> dict[str, dict[str, str]]:
    """The parts of every study, each with its question."""
    from groklab.studies import PARTS

    return {study: {name: _question(part) for name, part in found.items()} for study, found in PARTS.items()}


def _question(study: Callable[..., object]) -> str:
    return (sys.modules[study.__module__].__doc__ or "").partition("\n")[0]
