"""Published benchmarks as tasks: a user's own file, in the format it is published in.

Published scores come from a model that judges free text. Our grader is exact, so what it says on the same file is a lower
bound. To add a format: copy a file beside this one and give its `Format` a line in `FORMATS`.
"""

from pipeline.benchmarks.base import Format
from pipeline.benchmarks.frames import FRAMES
from pipeline.benchmarks.hle import HLE
from pipeline.benchmarks.seal0 import SEAL0
from pipeline.benchmarks.simpleqa import SIMPLEQA
from pipeline.benchmarks.xbench import XBENCH

FORMATS: dict[str, Format] = {format.name: format for format in (SIMPLEQA, FRAMES, HLE, XBENCH, SEAL0)}

__all__ = ["FORMATS", "Format"]
