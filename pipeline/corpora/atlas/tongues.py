"""Languages and currencies: Unicode CLDR (through babel) against the Factbook and GeoNames."""

import re
from collections.abc import Mapping

from babel import Locale
from babel.core import get_global
from babel.languages import get_official_languages, get_territory_language_info
from babel.localedata import locale_identifiers
from babel.numbers import get_currency_precision, get_territory_currencies

from pipeline.corpora.atlas.draft import Draft, slug
from pipeline.corpora.atlas.factbook import Area
from pipeline.corpora.atlas.geonames import load

_OFFICIAL = re.compile(r"([A-Z][\w'’ -]*?)(?: \([A-Z][^()]*\))?(?: [\d.]+%)? \([^()]*?\bofficial\b([^()]*)\)")
_PARTLY = re.compile(r"regional|^ in |only in|locally|minority")
_OTHER_NAMES = {
    "afghan persian or dari": "fa", "bangla": "bn", "kirundi": "rn", "setswana": "tn", "dhivehi": "dv", "sesotho": "st",
    "castilian spanish": "es", "bahasa malaysia": "ms", "bahasa indonesia": "id", "slovene": "sl", "kiswahili": "sw",
    "kiswahili or swahili": "sw", "standard chinese or mandarin": "zh", "mandarin": "zh", "persian farsi": "fa", "farsi": "fa",
    "tuvaluan": "tvl", "nauruan": "na", "creole": "ht", "taukei": "fj", "english only": "en", "maori": "mi", "tamazight": "zgh",
    "sepedi or pedi": "nso", "zulu or zulu": "zu", "xhosa or xhosa": "xh", "setswana or tswana": "tn", "sesotho or sotho": "st",
    "swati or swati": "ss", "tshivenda or venda": "ve", "xitsonga or tsonga": "ts", "ndebele or ndebele": "nr", "seychellois creole": "crs",
    "bokmal norwegian": "no", "nynorsk norwegian": "no", "kyrgyz": "ky", "sangho": "sg", "gilbertese": "gil", "tetun": "tet",
}  # fmt: skip
"""Names the Factbook uses for languages that CLDR calls otherwise."""
_SAME = {"prs": "fa", "nb": "no", "nn": "no", "fil": "tl", "gsw": "de", "pes": "fa"}
"""Codes CLDR keeps apart and the Factbook does not."""
_EN = Locale("en")


def tongues(draft: Draft, areas: Mapping[str, Area]) -> None:
    """Official languages. A country is a gap where both sources state them and differ; where one is silent, the other counts."""
    cldr = draft.source("babel", "BSD-3-Clause (data: Unicode-3.0)", "2025")
    names = {name.lower(): code for code, name in _EN.languages.items()} | _OTHER_NAMES
    stated = known = 0
    for iso, area in areas.items():
        country = f"country:{iso}"
        if not draft.has(country):
            continue
        ours = {_SAME.get(c.split("_")[0], c.split("_")[0]) for c in get_official_languages(iso, de_facto=True)}
        text = area.text("People and Society", "Languages", "Languages") or ""
        told = [name for name, how in _OFFICIAL.findall(text) if not _PARTLY.search(how)]
        codes = [names.get(name.lower().strip()) for name in told]
        stated, known = stated + len(told), known + sum(c is not None for c in codes)
        theirs = {_SAME.get(c, c) for c in codes if c is not None} | ({"?"} if None in codes else set())
        if not ours or (theirs and ours != theirs):
            draft.gap(country, "official_language", "sources disagree")
        for code in sorted(ours & theirs if theirs else ours):
            if code not in _EN.languages:
                draft.gap(country, "official_language", "without an English name")
                continue
            draft.fact(country, "official_language", language(draft, code), cldr)
        if main := main_language(iso):
            draft.fact(country, "main_language", language(draft, main), cldr)
    draft.joined("names of official languages", known, stated)


def main_language(iso: str) -> str | None:
    """The language that CLDR says most people use, where it leads the next by half as many people again."""
    shares: dict[str, float] = {}
    for tag, about in get_territory_language_info(iso).items():
        code = _SAME.get(tag.split("_")[0], tag.split("_")[0])
        shares[code] = max(shares.get(code, 0.0), float(about["population_percent"] or 0))
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))[:2]
    if not ranked or ranked[0][1] < 40 or (len(ranked) > 1 and ranked[0][1] < 1.5 * ranked[1][1]):
        return None
    return ranked[0][0] if ranked[0][0] in _EN.languages else None


def language(draft: Draft, code: str) -> str:
    """A language with its script and direction."""
    key = f"language:{code}"
    if draft.has(key):
        return key
    cldr = draft.source("babel", "BSD-3-Clause (data: Unicode-3.0)", "2025")
    title = _EN.languages.get(code, code)
    draft.entity(key, "language", title, f"{title} language")
    likely = get_global("likely_subtags").get(code, "")
    script = next((part for part in likely.split("_")[1:] if len(part) == 4), None)
    if script and script in _EN.scripts:
        letters = "Chinese" if script == "Hans" else _EN.scripts[script]
        written = draft.entity(f"script:{script}", "script", f"{letters} script", name=f"the {letters} script")
        draft.fact(key, "script", written, cldr)
        way = "right to left" if script in _RIGHT_TO_LEFT else "left to right"
        sense = draft.entity(f"direction:{way}", "writing direction", way.capitalize(), name=f"from {way}")
        draft.fact(key, "direction", sense, cldr)
    _number_habits(draft, key, code, cldr)
    return key


def _number_habits(draft: Draft, key: str, code: str, source: int) -> None:
    """Decimal mark and plural categories of a language that has a locale of its own."""
    if code not in locale_identifiers():
        return
    locale = Locale.parse(code)
    mark = {",": "comma", ".": "point"}.get(locale.number_symbols.get("latn", {}).get("decimal", ""))
    if mark:
        draft.fact(
            key,
            "decimal_mark",
            draft.entity(f"mark:{mark}", "decimal mark", f"Decimal {mark}", name=f"a {mark}"),
            source,
        )
    draft.fact(key, "plural_forms", len(locale.plural_form.tags) + 1, source)


_RIGHT_TO_LEFT = frozenset({"Arab", "Hebr", "Thaa", "Syrc", "Nkoo"})


def currencies(draft: Draft, areas: Mapping[str, Area]) -> None:
    """The tender on which GeoNames and CLDR agree; a country with several, or with another in the Factbook, stays open."""
    cldr = draft.source("babel", "BSD-3-Clause (data: Unicode-3.0)", "2025")
    for iso, country in load("countries").items():
        kind = next((k for k in ("country", "territory") if draft.has(f"{k}:{iso}")), None)
        code = country["currencycode"]
        if kind is None or not code:
            continue
        tender = get_territory_currencies(iso, tender=True)
        told = (
            re.search(r"\(([A-Z]{3})\)", (areas[iso].text("Economy", "Exchange rates", "Currency") or ""))
            if iso in areas
            else None
        )
        if tender != [code] or (told and told[1] != code):
            draft.report["sources disagree: currency"] += 1
            continue
        relation = "currency" if kind == "country" else "territory_currency"
        draft.fact(f"{kind}:{iso}", relation, currency(draft, code), cldr)


def currency(draft: Draft, code: str) -> str:
    """A currency with its unit and its decimal digits."""
    key = f"currency:{code}"
    if draft.has(key):
        return key
    cldr = draft.source("babel", "BSD-3-Clause (data: Unicode-3.0)", "2025")
    title: str = _EN.currencies[code]
    title = title[:1].upper() + title[1:]
    name = title if title[1:2].isupper() or " " in title else title.lower()
    draft.entity(key, "currency", title, name=f"the {name}", aliases=[code])
    unit = re.sub(r"\s*\([^()]*\)", "", _EN.currencies[code]).split(" ")[-1].lower()
    draft.fact(
        key, "currency_unit", draft.entity(f"unit:{slug(unit)}", "currency unit", unit.capitalize(), name=unit), cldr
    )
    draft.fact(key, "decimals", get_currency_precision(code), cldr)
    return key
