"""What a plan, and the data in it, is made of: keys that tell snapshots and caches apart, and why two differ."""

from penstock.plan.content_key.difference import why_not
from penstock.plan.content_key.digest import files_of
from penstock.plan.content_key.made_of import MadeOf, made_of

__all__ = ["MadeOf", "files_of", "made_of", "why_not"]
