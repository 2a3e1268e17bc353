"""Every error that groklab raises on purpose: a sentence for the person who caused it."""


class GroklabError(Exception):
    """Base of the family; the command line prints its sentence and exits with `exit_code`."""

    exit_code = 1


class UsageError(GroklabError):
    """What was asked for cannot be right: unknown name, value out of range, missing file."""

    exit_code = 2


class FixedSetting(UsageError):
    """A setting that the study itself sets, run by run."""


class TaskError(UsageError):
    """A task, table or split that cannot exist."""


class ResourceError(GroklabError):
    """The machine has too little of something: memory, disk space."""


class LabError(GroklabError):
    """The lab cannot be opened, read or written."""


class Unreachable(LabError):
    """The database cannot be reached now, or gave way to another transaction: the same may work a moment later."""


class LeaseLost(LabError):
    """Another process has taken over the fleet that this one was training."""


class CheckpointError(LabError):
    """A checkpoint is damaged, incomplete or of another plan."""


class ModelFileError(GroklabError):
    """A saved model is damaged, incomplete or of another version."""


class TrainingError(GroklabError):
    """A fleet failed while training."""


class CompilationError(TrainingError):
    """The compiler failed on this machine; the same plan can be carried out uncompiled."""


def unknown(kind: str, name: object, known: object) -> UsageError:
    """The error for a name that stands in no table."""
    choices = ", ".join(str(choice) for choice in sorted(map(str, known)))  # type: ignore[call-overload]
    return UsageError(f"unknown {kind} {name!r}; known: {choices}")
