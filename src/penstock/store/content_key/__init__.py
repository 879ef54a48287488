"""Content keys: digests of a plan and its data that identify snapshots and caches, and reasons why two keys differ."""

from penstock.store.content_key.difference import why_not
from penstock.store.content_key.digest import files_of
from penstock.store.content_key.made_of import MadeOf, made_of

__all__ = ["MadeOf", "files_of", "made_of", "why_not"]
