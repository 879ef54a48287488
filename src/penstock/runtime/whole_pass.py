"""A whole iteration over a plan as Blocks, for steps that need all of them."""

from __future__ import annotations

import time
from collections.abc import Generator

from penstock.block.block import Block
from penstock.options import Options
from penstock.physical.stretch import Fatal
from penstock.plan.node import Node
from penstock.rewrite.driver import optimise
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.run import Run, RunSettings


def whole_pass(plan: Node, options: Options, epoch: int, settings: RunSettings) -> Generator[Block, None, None]:
    """Yield the Blocks of an iteration, in order. The first failure ends it. Closing the generator ends the workers."""
    run = Run(optimise(plan, options), options, epoch, settings)
    sizer = BlockSizer()
    try:
        while True:
            started = time.perf_counter()
            block = run.pull(sizer.want)
            if isinstance(block, Exception):
                raise block
            if block is None:
                return
            sizer.observe(block.size, time.perf_counter() - started, block.nbytes, columns=len(block.columns))
            yield block
    except Fatal as ended:
        raise ended.error from ended.error.__cause__
    finally:
        run.close()
