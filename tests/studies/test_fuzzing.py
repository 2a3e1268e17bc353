"""Whatever stands in a study file: it is a study, or one sentence says why not, and at once."""

import gc
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from groklab.errors import UsageError
from groklab.studies import load
from groklab.studies.strict_yaml import BYTES, parse_yaml

AT_ONCE = 0.1 if sys.gettrace() is None else 1.0  # seconds; one who measures the coverage takes time too
EXAMPLE = (Path(__file__).parents[2] / "docs" / "examples" / "weight_decay.yaml").read_bytes()
RICH = b"""\
name: rich
question: >
  Does everything
  work?
factor: init
reference: he
threshold: 9e-1
seeds: [0, 3, {split: 0, init: 1, batch: 2}]
base:
  optimizer: sgd
  optimizer.momentum: .5
  model: {layers: 1, d_model: 64, num_heads: 2}
  stop: null
  label_noise: 0
arms:
  he: {init: {name: he, reach: [ffn, readout], gains: {ffn: 2, readout: 0.5}, zero_biases: false}}
  "uniform": {init: uniform(0.1)}
quick: {seeds: 1, batch_size: full, stop: {accuracy: 1, evaluations: 1}}
"""
TOKENS = (
    b": |:|- |? |[|]|{|}|, |\n|\n  |\n    |\n- |#|'|\"|\\|&a |*a |!!str |!x |<<: |--- |...|\n---\n|%YAML 1.1\n|>|\\n|@"
    b"|`|~|null|true|yes|.nan|-.inf|1e999|1e-3|0o17|99999999999999999999|-1|0|3|0.5|\t|\r|\xff|\xc3\xa9|\xef\xbb\xbf|\x00"
    b"|name: a\n|question: b\n|seeds: 2\n|arms:\n|arms: {a: {}}\n|base:\n|quick:\n|tasks: [x_plus_y]\n|threshold: 1\n"
    b"|reference: a\n|steps|init|he|optimizer|sgd|.lr|stop|gains|ffn|model.d_model|seed|task|x_plus_y mod 7|\\e|\\uD800"
).split(b"|")
KEYS = (
    *("name", "question", "factor", "reference", "threshold", "seeds", "base", "tasks", "arms", "quick", "a", "b"),
    *("steps", "task", "task.modulus", "init", "init.reach", "init.gains", "optimizer", "optimizer.lr", "seed", "stop"),
    *("optimizer.betas", "model", "model.d_model", "precision", "loss", "batch_size"),
)
WORDS: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", " ", "a", "b"),
    *("x_plus_y", "x_minus_y mod 7", "permutation of 4", "x_plus_y mod 999999999", "permutation of 99", "he", "sgd"),
    *("uniform(0.1)", "uniform(1e999)", "normal(--)", "decoder", "full", "bf16", "mse", "all", "é\u2028", "x" * 2000),
]
OPENERS = (b"[", b"{", b"- ", b"? ", b"{a: ", b"[{a: ", b"-\n ", b"a: ", b"{? ", b"&a [", b"!x [", b"'", b'"', b"|\n ")


def mutated(chance: random.Random) -> bytes:
    """A valid file with a few things done to it."""
    content = bytearray(chance.choice((EXAMPLE, RICH)))
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at, end = sorted((chance.randrange(len(content) + 1), chance.randrange(len(content) + 1)))
        match chance.randrange(6):
            case 0:
                content[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                content[at:at] = chance.choice(TOKENS)
            case 2:
                del content[at : min(end, at + 20)]
            case 3:
                content[at:at] = content[at:end]
            case 4:
                lines = bytes(content).split(b"\n")
                chance.shuffle(lines)
                content[:] = b"\n".join(lines)
            case 5:
                content[at : at + 3] = chance.choice(TOKENS)
    return bytes(content)


def soup(chance: random.Random) -> bytes:
    """Words and signs of YAML in any order."""
    return b"".join(chance.choices(TOKENS, k=chance.randrange(1, 60)))


def noise(chance: random.Random) -> bytes:
    """Any bytes."""
    return chance.randbytes(chance.randrange(300))


def nest(chance: random.Random) -> bytes:
    """Something opened again and again, closed or not."""
    opener, times = chance.choice(OPENERS), int(10 ** chance.uniform(0, 4.5))
    closer = chance.choice((b"", b"]", b"}", b"\n", b"x"))
    return (chance.choice((b"", b"a: ", b"arms:\n  ")) + opener * times + closer * times)[: BYTES + 100]


def nonsense(chance: random.Random) -> bytes:
    """Good YAML with any values under the keys that there are."""

    def value(depth: int) -> Any:
        kind = chance.randrange(8 if depth < 4 else 5)
        if kind < 5:
            return chance.choice(WORDS)
        if kind == 5:
            return [value(depth + 1) for _ in range(chance.randrange(4))]
        return {chance.choice(KEYS): value(depth + 1) for _ in range(chance.randrange(4))}

    data = parse_yaml(chance.choice((EXAMPLE, RICH)), "valid.yaml").data
    for _ in range(chance.choice((1, 1, 1, 3))):
        where = data
        while chance.random() < 0.6 and any(isinstance(inside, dict) for inside in where.values()):
            where = chance.choice([inside for inside in where.values() if isinstance(inside, dict)])
        where[chance.choice([*where, *KEYS])] = value(0)
    return yaml.safe_dump(data, allow_unicode=chance.random() < 0.5, sort_keys=False).encode()


def crowd(chance: random.Random) -> bytes:
    """As many arms, settings and runs as are allowed, and a few more, with a mistake at the end or none."""
    arms, most = int(10 ** chance.uniform(0, 2.4)), chance.randrange(1, 12)
    settings: list[tuple[str, Any]] = [
        *(
            ("steps", 3),
            ("loss", "mse"),
            ("batch_size", 8),
            ("data_fraction", 0.3),
            ("init.reach", "all"),
            ("label_noise", 0),
        ),
        *(("optimizer.lr", 1), ("optimizer.betas", [0.9, 0.9]), ("model.layers", 1), ("model.d_ff", 3)),
        *(("stop.accuracy", 1), ("precision", "bf16"), ("model.dropout", 0), ("init.gains.ffn", 2)),
    ]
    chance.shuffle(settings)
    data = parse_yaml(RICH, "valid.yaml").data
    data["base"], data["quick"] = {}, dict(settings[most:])
    data["arms"] = {"he": {}, **{str(arm): dict(settings[:most]) for arm in range(arms)}}
    data["seeds"] = chance.choice((1, 2, 3))
    if chance.random() < 0.6:
        data["arms"]["last"], data["quick"]["model.d_model"] = {"model.num_heads": 16}, 8
    return json.dumps(data).encode()


KINDS: tuple[Callable[[random.Random], bytes], ...] = (mutated, soup, noise, nest, nonsense, crowd)


def fuzz(inputs: int, path: Path) -> tuple[Counter[str], dict[str, float]]:
    """How many inputs of each kind were taken and refused, and the longest that one of them took."""
    outcomes: Counter[str] = Counter()
    longest: dict[str, float] = {}
    gc.collect()
    gc.freeze()  # torch's objects, and what other tests left, are not collected again in the middle of an input
    for number in range(inputs):
        kind = KINDS[number % len(KINDS)]
        path.write_bytes(kind(random.Random(number)))
        began = time.process_time()  # not the clock's: other processes may be busy
        try:
            study = load(path)
            outcome = "taken" if sum(len(arm.runs) for arm in study.arms) <= 1000 else "taken, and large"
        except UsageError as error:
            outcome, sentence = "refused", str(error)
            assert sentence.startswith(str(path)) and "\n" not in sentence and len(sentence) < 1300, number
        seconds = time.process_time() - began
        assert seconds < AT_ONCE or outcome == "taken, and large", f"{kind.__name__} {number} took {seconds} s"
        outcomes[f"{kind.__name__} {outcome}"] += 1
        longest[kind.__name__] = max(seconds, longest.get(kind.__name__, 0.0))
    gc.unfreeze()
    return outcomes, longest


def test_no_input_raises_anything_else_or_takes_long(tmp_path: Path) -> None:
    (tmp_path / "warm.yaml").write_bytes(RICH)
    load(tmp_path / "warm.yaml")  # imports torch
    outcomes, _ = fuzz(2_000, tmp_path / "s.yaml")
    both = [f"{kind} {how}" for kind in ("mutated", "nonsense", "crowd") for how in ("taken", "refused")]
    assert all(outcomes[way] > 5 for way in both), outcomes


@pytest.mark.slow
def test_no_input_of_a_hundred_thousand_does(tmp_path: Path) -> None:
    (tmp_path / "warm.yaml").write_bytes(RICH)
    load(tmp_path / "warm.yaml")
    outcomes, longest = fuzz(100_000, tmp_path / "s.yaml")
    print(f"\n{sorted(outcomes.items())}\nlongest: { {kind: round(s, 4) for kind, s in longest.items()} }")
    assert outcomes.total() == 100_000
