"""The run config: one tree, the same in YAML, on the command line (`--train.lr 0.01`) and in Python."""

from episodica.config.resolution import field_at, paths, resolve, resolve_stored, sections
from episodica.config.tree import DEFAULTS, NOT_IN_THE_NUMBERS, SECTION_KINDS, RunConfig, Schedule
from episodica.config.trust import TRUST, NotTrusted, is_trusted, most_bytes, trust

__all__ = [
    "DEFAULTS",
    "NOT_IN_THE_NUMBERS",
    "SECTION_KINDS",
    "TRUST",
    "NotTrusted",
    "RunConfig",
    "Schedule",
    "field_at",
    "is_trusted",
    "most_bytes",
    "paths",
    "resolve",
    "resolve_stored",
    "sections",
    "trust",
]
