"""The release that training is measured on: made once by this project's own curation, then found again."""

from flows.cli.local import Here
from infra.settings import Settings
from infra.store import Store
from pipeline.release import resolve
from schemas.config import CurateConfig

CONFIG = CurateConfig.model_validate(
    {
        "family": "hard_search",
        "candidates": 4800,
        "seed": 21,
        "test_share": 0.15,
        "aims": [
            {"stratum": f"hard_search/{hops}/search+open/entity/{obfuscation}", "weight": weight}
            for hops, obfuscation, weight in (
                (4, "described", 0.5),
                (4, "mixed", 0.15),
                (4, "region", 0.15),
                (5, "described", 0.1),
                (3, "band", 0.1),
            )
        ],
        "hard_search": {"types": ["country", "US state", "element"], "min_clues": 3, "max_clues": 3},
        "triviality": {"p0": 0.05, "p1": 0.6, "alpha": 0.2, "beta": 0.2, "limit": 4},
    }
)
"""Tasks over names that the starter knows; what it solves sometimes is kept, 1 to 7 of 8."""


async def hard_search(settings: Settings) -> str:
    """Its URL. The first time it is curated, which takes a while; a run that was stopped goes on."""
    return resolve(Store(settings.store), await Here(settings).curate(CONFIG))
