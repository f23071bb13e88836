"""Hard search: questions about one entity of a world, identified by clues none of which is enough.

`clues` says what can be said and how many each saying leaves; `sampler` draws minimal sets; `proof` re-proves them on the
world itself; `grammar` puts them into English and `parse` reads them back; `generator` is the family.
"""

from pipeline.families.hard_search.generator import HardSearch, NothingToAsk
from pipeline.families.hard_search.parse import ParseError, parse

__all__ = ["HardSearch", "NothingToAsk", "ParseError", "parse"]
