"""What a study file may say: checked by pydantic here, at the border; what a run's settings mean is said elsewhere."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import ErrorDetails

from groklab.errors import UsageError, unknown
from groklab.studies.strict_yaml import Document, Place

CELLS = 200  # arms × tasks; more would take longer to refuse than a moment
RUNS = 100_000
SEED_PARTS = ("split", "init", "batch")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_WANTED = {
    "dict_type": "a mapping, lines such as `optimizer.lr: 0.001`",
    "float_type": "a number",
    "list_type": "a list",
    "model_type": "a mapping",
    "string_type": "text, in quotes if it looks like something else",
}

Seed = int | tuple[int, int, int]
"""One seed for everything, or those of split, initial weights and batches."""


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            "must be letters, digits, - and _, 64 at most, the first no sign, since it becomes the name of a folder; "
            f"not {text!r}"
        )
    return text


def _line(text: str) -> str:
    joined = " ".join(text.split())
    if not joined:
        raise ValueError("must not be empty")
    return joined


def _arm(name: str) -> str:
    if not name or name != " ".join(name.split()):
        raise ValueError(f"has an arm {name!r}: empty, or with spaces that nobody sees")
    return name


def _different(texts: list[str]) -> list[str]:
    if len(set(texts)) < len(texts):
        raise ValueError("has the same entry twice")
    return texts


def _threshold(value: float) -> float:
    if not 0.0 < value <= 1.0:
        raise ValueError(f"must be above 0 and at most 1, not {value}")
    return value


def _seeds(value: object) -> int | tuple[Seed, ...]:
    if type(value) is int and 1 <= value <= RUNS:
        return value
    if isinstance(value, list) and value:
        seeds = [_seed(each) for each in value]
        if None not in seeds and len(set(seeds)) == len(seeds):
            return tuple(seed for seed in seeds if seed is not None)
    raise ValueError(
        f"must be how many seeds (1 to {RUNS:,}), or a list of different ones: whole numbers from 0, "
        f"or {{split: 0, init: 1, batch: 2}}; not {value!r}"
    )


def _seed(value: object) -> Seed | None:
    parts: dict[Any, Any] = value if isinstance(value, dict) else dict.fromkeys(SEED_PARTS, value)
    if sorted(parts) != sorted(SEED_PARTS) or any(type(part) is not int or part < 0 for part in parts.values()):
        return None
    split, init, batch = (int(parts[part]) for part in SEED_PARTS)
    return split if split == init == batch else (split, init, batch)


Text = Annotated[str, AfterValidator(_line)]
Settings = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]
Tasks = Annotated[list[str], Field(min_length=1), AfterValidator(_different)]
Seeds = Annotated[int | tuple[Seed, ...], PlainValidator(_seeds)]


class Quick(BaseModel):
    """What `--quick` changes: the tasks, the seeds, and settings of every run."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    tasks: Tasks | None = None
    seeds: Seeds | None = None

    @property
    def settings(self) -> dict[str, Any]:
        return self.model_extra or {}


class StudyDocument(BaseModel):
    """The keys of a study file; one that may be left out, or be null, is what `Study` says it is."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_name)]
    question: Text
    seeds: Seeds
    arms: Annotated[dict[Annotated[str, AfterValidator(_arm)], Settings], Field(min_length=1)]
    factor: Text | None = None
    reference: str | None = None
    threshold: Annotated[float, AfterValidator(_threshold)] | None = None
    base: Settings = Field(default_factory=dict)
    tasks: Tasks | None = None
    quick: Quick | None = None


def checked(source: Document) -> StudyDocument:
    """The document, or the first thing that is wrong with it as an error that names the line."""
    try:
        document = StudyDocument.model_validate(source.data)
    except ValidationError as error:
        # An unknown key explains a missing one: it is told first.
        first, *_ = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        raise _sentence(source, first) from None
    for place, reason in _contradictions(document):
        raise source.refused(place, reason)
    return document


def _contradictions(document: StudyDocument) -> Iterator[tuple[Place, object]]:
    """What no key can know alone."""
    if document.reference is not None and document.reference not in document.arms:
        yield ("reference",), unknown("reference", document.reference, document.arms)
    if document.quick is not None and document.quick.tasks is not None and document.tasks is None:
        yield ("quick", "tasks"), "there are no `tasks` that `quick` could replace"
    tasks = max(len(document.tasks or ("",)), len((document.quick and document.quick.tasks) or ("",)))
    cells = tasks * len(document.arms)
    if cells > CELLS:
        yield ("arms",), f"{cells:,} arms, counted on every task, are too many; {CELLS} are allowed"
    for place, seeds in ((("seeds",), document.seeds), (("quick", "seeds"), document.quick and document.quick.seeds)):
        count = seeds if isinstance(seeds, int) else len(seeds or ())
        if cells * count > RUNS:
            yield place, f"{cells * count:,} runs are too many for one study; {RUNS:,} are allowed"


def _sentence(source: Document, error: ErrorDetails) -> UsageError:
    place: Place = tuple(error["loc"])
    if place[-1:] == ("[key]",):  # pydantic's word for a key that is wrong itself
        place = place[:-2]
    key = ".".join(map(str, place))
    match error["type"]:
        case "extra_forbidden":
            reason: object = unknown("key", key, StudyDocument.model_fields)
        case "missing":
            reason = f"the key {key!r} is missing"
        case "too_short":
            reason = f"{key} must not be empty"
        case "value_error":
            reason = f"{key} {error['ctx']['error']}"
        case kind if kind in _WANTED:
            reason = f"{key} must be {_WANTED[kind]}, not {error['input']!r}"
        case _:
            reason = f"{key}: {error['msg']}"
    return source.refused(place, reason)
