"""The ranks of torch.distributed."""

from __future__ import annotations

import os
from typing import Any

from penstock.adaptors.ranks import check_alike
from penstock.errors import FailedPreconditionError


def world(torch: Any) -> tuple[int, int]:
    """Size of the group and rank in it; (1, 0) where torch.distributed is not in use."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size(), distributed.get_rank()
    return 1, 0


def own_part(torch: Any) -> tuple[int, int]:
    """As `world`; an error where several ranks were announced and no group is there yet."""
    found = world(torch)
    announced = os.environ.get("WORLD_SIZE", "1")
    if found == (1, 0) and announced not in ("", "1") and not torch.distributed.is_initialized():
        message = f'shard="rank" found no process group, though WORLD_SIZE={announced} says there are several ranks.'
        hint = "Call torch.distributed.init_process_group() before, or give shard=(count, index)."
        raise FailedPreconditionError(message, hint=hint)
    return found


def agree(torch: Any, mine: dict[str, Any]) -> None:
    """Raise FailedPreconditionError on every rank unless all have the same identity. It waits for all of them."""
    everyone: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everyone, mine)
    check_alike(everyone)
