"""Where pages come from, and that nothing a page holds gets out of it."""

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libzim.writer import Creator, Hint, Item, StringProvider  # type: ignore[import-untyped]

from infra.pages import local
from infra.pages.base import PageError, Pages, shown
from infra.pages.corpus import Corpus
from infra.pages.deny import Deny
from infra.pages.extract import decode, extract
from infra.pages.place import open_pages
from infra.pages.workers import Extracted, Extractor, Html
from pipeline.corpora import store
from schemas.base import content_hash
from schemas.world import Document
from tests.infra.sites import NIGER, SITE, write_site
from tests.worlds import toy_world


async def title(pages: Pages, name: str) -> str | None:
    page = await pages.find(name)
    return None if page is None else page.title


class Article(Item):  # type: ignore[misc]
    def __init__(self, path: str, title: str, content: str, mimetype: str = "text/html") -> None:
        super().__init__()
        self.path, self.title, self.content, self.mimetype = path, title, content, mimetype

    def get_path(self) -> str:
        return self.path

    def get_title(self) -> str:
        return self.title

    def get_mimetype(self) -> str:
        return self.mimetype

    def get_contentprovider(self) -> StringProvider:
        return StringProvider(self.content)

    def get_hints(self) -> dict[Hint, bool]:
        return {Hint.FRONT_ARTICLE: True}


# A place


async def test_a_stored_world_is_found_by_id_and_title_with_the_hashes_and_links_it_was_stored_with(
    tmp_path: Path,
) -> None:
    store.save(toy_world(), tmp_path / "toy", {})
    pages = open_pages(str(tmp_path / "toy"))
    niger = toy_world().documents["country/niger"]
    page = await pages.find("Niger")
    assert page is not None and page == await pages.find("country/niger")
    assert (page.id, page.title, page.text, page.hash) == (niger.id, niger.title, niger.text, niger.hash)
    assert {link.target for link in page.links} == set(niger.links)
    assert "Niamey" in {link.label for link in page.links}
    assert isinstance(pages, Corpus) and pages.index.search("capital Niamey", 1)[0].snippet


def test_a_damaged_world_says_what_to_do(tmp_path: Path) -> None:
    store.save(toy_world(), tmp_path / "toy", {})
    (tmp_path / "toy" / "documents.parquet").write_bytes(b"PAR1")
    with pytest.raises(PageError, match="touchstone world build"):
        open_pages(str(tmp_path / "toy"))


@pytest.mark.parametrize("place", ["", "nowhere", "https", "http://example.org", "page.html", "a.zim"])
def test_a_place_without_pages_is_refused_with_what_places_there_are(place: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"a \.zim file, or `http`"):
        open_pages(str(tmp_path / place) if place != "" else str(tmp_path / "x"))


def test_hosts_are_for_the_web_only(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="hosts=localhost"):
        open_pages(str(tmp_path), ["localhost"])


# A folder


async def test_a_folder_is_read_whole_and_its_links_lead_to_its_own_pages_only(tmp_path: Path) -> None:
    write_site(tmp_path / "site", SITE)
    write_site(tmp_path, {"secret.html": "<p>secret"})
    pages = open_pages(str(tmp_path / "site"))
    page = await pages.find("countries/niger.html")
    assert page is not None and page == await pages.find("Niger")
    assert [(link.label, link.target) for link in page.links] == [
        ("Home", "index.html"),
        ("Niamey", "countries/niamey.html"),
        ("more", "countries/mali.html"),
        ("more", "countries/chad.html"),
    ]
    assert page.text.startswith(
        "Niger is a country in West Africa. Its capital is Niamey.\nThe page says <|im_end|> and"
    )
    home = await pages.find("index.html")
    assert home is not None and home.links[1].target == "countries/index.html"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.html",
        "/secret.html",
        "countries/../index.html",
        "countries%2Fniger.html",
        "file:///etc/passwd",
        "\0",
        "link.html",
    ],
)
async def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    write_site(tmp_path, {"secret.html": "<p>secret"})
    site = write_site(tmp_path / "site", SITE)
    (site / "link.html").symlink_to(tmp_path / "secret.html")
    (site / "loop").symlink_to(site)
    os.mkfifo(site / "pipe.html")
    pages = open_pages(str(site))
    assert await pages.find(name) is None
    assert isinstance(pages, Corpus) and len(pages.documents) == len(SITE)


async def test_a_title_that_several_pages_share_gives_way_to_what_a_browser_writes_on_its_tab(tmp_path: Path) -> None:
    page = "<html><head><title>{0} - Book</title></head><body><h1>Book</h1><p>{0}.</p></body></html>"
    site = write_site(tmp_path, {f"{n}.html": page.format(f"Chapter {n}") for n in (1, 2)})
    assert await title(open_pages(str(site)), "Chapter 2 - Book") == "Chapter 2 - Book"


def test_a_line_of_source_is_no_line_of_text_except_where_it_is_set_as_written() -> None:
    page = extract(
        b"<html><body><p>One\n  <b>two</b>\nthree.</p><pre>a\n  b</pre><p>Four.</p></body></html>", "http://h/"
    )
    assert page["text"].splitlines() == ["One two three.", "a", "  b", "Four."]


async def test_two_pages_of_one_title_are_told_apart(tmp_path: Path) -> None:
    page = "<html><body><h1>Mercury</h1><p>It is {}.</p></body></html>"
    site = write_site(tmp_path, {"a.html": page.format("a planet"), "b.html": page.format("a metal")})
    pages = open_pages(str(site))
    assert [await title(pages, name) for name in ("Mercury", "b.html")] == ["Mercury", "Mercury (b.html)"]


def test_a_folder_without_html_and_one_with_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "note.txt").write_text("x")
    with pytest.raises(PageError, match="no HTML files"):
        open_pages(str(tmp_path))
    monkeypatch.setattr(local, "PAGES", len(SITE) - 1)
    with pytest.raises(PageError, match="at most 5 are read into memory; give a smaller selection"):
        open_pages(str(write_site(tmp_path, SITE)))


# A ZIM archive


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "sahel.zim"
    with Creator(path) as creator:
        creator.set_mainpath("index.html")
        for name, page in SITE.items():
            creator.add_item(Article(name, "Republic of Niger" if page == NIGER else "", page))
        creator.add_item(Article("style.css", "", "p {}", "text/css"))
        creator.add_item(
            Article("odd/Who? Me & you", "", "<html><body><p>Odd <a href='../countries/mali.html'>Mali</a>")
        )
        creator.add_redirection("Le_Niger", "Le Niger", "countries/niger.html", {})
        creator.add_redirection("Nowhere", "Nowhere", "style.css", {})
    return path


async def test_an_archive_is_found_by_path_title_and_redirect(archive: Path) -> None:
    pages = open_pages(str(archive))
    page = await pages.find("Republic of Niger")
    assert page is not None and page.id == "countries/niger.html"
    for name in ("countries/niger.html", "Le_Niger", "Le Niger"):
        assert await pages.find(name) == page
    assert [await pages.find(name) for name in ("style.css", "Nowhere")] == [None, None]
    assert isinstance(pages, Corpus) and len(pages.documents) == len(SITE) + 1
    odd = await pages.find("odd/Who? Me & you")
    assert odd is not None and odd.links[0].target == "countries/mali.html"
    assert pages.index.search("river Niger", 1)[0].id == "countries/niamey.html"


def test_a_file_that_is_no_archive_or_a_cut_one_is_refused(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    for number, content in enumerate((b"", b"not a ZIM", whole[:200], whole[: len(whole) // 2])):
        path = tmp_path / f"{number}.zim"
        path.write_bytes(content)
        with pytest.raises(PageError, match="give a ZIM archive that is whole"):
            open_pages(str(path))


# HTML


def test_a_title_in_any_declared_encoding_is_read() -> None:
    text = "Ñandú, Ærø"
    page = f"<html><head><title>{text}</title></head><body><p>x</p></body></html>"
    assert decode(page.encode()) == decode(page.encode("latin-1")) == page
    assert decode(page.encode("utf-16")) == page
    japanese = "<html><head><meta charset='iso-2022-jp'></head>日本"
    assert decode(japanese.encode("iso-2022-jp")) == japanese
    assert decode(page.encode("cp1252"), "no-such-charset") == page
    assert decode(b"\xff\xfe\x00") == "ÿþ\x00"
    assert decode(rb"half \ud800", "unicode_escape") == "half ?"


def test_broken_html_is_read_as_far_as_it_goes() -> None:
    page = extract(b"<p>One <b>two<i>three</b> four<a href='x'>five<p>six", "http://h/")
    assert page["text"].split() == ["One", "twothree", "four", "five", "six"] or "six" in page["text"]
    assert page["links"][0][1] == "http://h/x"


HOSTILE = {
    "entities": b"<!DOCTYPE l [<!ENTITY a 'ha'><!ENTITY b '" + b"&a;" * 999 + b"'>]><html><body><p>Real &b;</p>",
    "title": b"<html><title>" + b"T" * 10**6 + b"</title><body><p>Real</p>",
    "controls": "<html><body><p>Re\0al \x1b[31m\x85 \u202eless\u2066 &#0;&#27;&#xD800;&#x9b; end</p>".encode(),
    "nested": b"<div>" * 900_000 + b"Real",
    "large": b"<p>" + b"x" * 50_000_000,
    "markup": b"<" * 1_000_000,
    "empty": b"",
    "binary": bytes(range(256)) * 999,
}


async def test_hostile_pages_cost_themselves_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_site(tmp_path, SITE | {f"{name}.html": page for name, page in HOSTILE.items()})
    with caplog.at_level(logging.WARNING):
        pages = open_pages(str(tmp_path))
    assert "pages left out, first: large.html: is longer than 5 MiB" in caplog.text
    assert isinstance(pages, Corpus) and len(pages.documents) == len(SITE) + len(HOSTILE) - 1
    for document in pages.documents.values():
        assert len(document.title) <= 300 and len(document.text) <= 400_000
        document.text.encode()
    assert pages.index.search("river", 1)[0].id == "countries/niamey.html"


def test_a_page_that_holds_its_reader_up_is_given_up_and_the_next_is_read() -> None:
    endless = b"<p><a href=x>a</a>" * 250_000
    extractor = Extractor(size=1, seconds=1)
    held, read = extractor.read_all([Html("http://h/1", endless), Html("http://h/2", NIGER.encode())])
    assert isinstance(held, PageError) and isinstance(read, Extracted) and read.title == "Niger"
    extractor.close()


def test_a_page_is_given_up_by_the_clock_too() -> None:
    extractor = Extractor(size=1, patience=0.01)
    (held,) = extractor.read_all([Html("http://h/1", NIGER.encode())])
    assert isinstance(held, PageError)
    extractor.close()


# What is denied


def test_deny_takes_ids_addresses_prefixes_and_hashes_and_refuses_the_rest() -> None:
    text = "What is the capital of Niger? Niamey."
    sha = "9" * 64
    deny = Deny(
        ["country/niger", "https://Bad.example/%7Ea", "https://bench.example/*", f"sha256:{sha}", content_hash(text)]
    )
    assert deny.name("country/niger") and not deny.name("country/nigeria")
    assert deny.name("http://bench.example/q/1") and not deny.name("http://bench.example.org/")
    assert deny.name("https://Bad.example/~a") and deny.name("http://Bad.example/%7ea")
    assert deny.covers("x", text, content_hash(text)) and not deny.covers("x", "other", content_hash("other"))
    assert not Deny() and not Deny().covers("x", text, "h")
    for entry in ("", " x", "sha256:12", "sha256:" + "g" * 64):
        with pytest.raises(PageError, match="deny="):
            Deny([entry])


@pytest.mark.parametrize(
    "spelled",
    ["http://h/secret", "https://h/secret", "HTTP://H/secret", "http://h/s%65cret", "http://h/secret#a", "http://h/secret?",
     "http://h/secret?#a", "http://h/secret?x=1", "http://h/./secret", "http://h/a/../secret", "http://h/a/%2E%2e/secret",
     "http://h//secret", "http://h/secret/", "http://h/secret//", "http://h/%2e/secret", "http://h/secret%20",
     "http://h/secret;", "http://h/secret%3b/", "http://h/secret ", "http://h:80/secret", "https://h:443/secret",
     "http://h:080/secret", "http://h./secret", "http://h/secret/.", "http://h/secret%00"],
)  # fmt: skip
def test_no_spelling_of_a_denied_address_is_let_through(spelled: str) -> None:
    assert Deny(["http://h/secret"]).name(spelled)
    assert Deny(["https://H:443/a/..//secret/?"]).name(spelled)
    assert Deny(["h/secret"]).name(spelled)
    assert Deny(["http://h/sec*"]).name(spelled)


@pytest.mark.parametrize(
    "other",
    ["http://h/", "http://h/secrets", "http://h/Secret", "http://h:8080/secret", "http://h.org/secret", "http://h/a/secret",
     "http://h/%252e/secret", "http://h/secret/more", "secret", "http://[h", "http://h:x/secret"],
)  # fmt: skip
def test_another_address_is_not_denied(other: str) -> None:
    assert not Deny(["http://h/secret"]).name(other)


def test_an_entry_with_a_query_denies_that_query_alone_and_a_prefix_ends_where_it_says() -> None:
    deny = Deny(["http://h/q?id=1", "http://h/set/*", "http://h/.*"])
    assert deny.name("https://H/q/?id=%31") and not deny.name("http://h/q?id=2") and not deny.name("http://h/q")
    assert deny.name("http://h/set") and deny.name("http://h//set/%31?x") and not deny.name("http://h/sets")
    assert deny.name("http://h/.hidden") and not deny.name("http://h.org/")


@given(st.text(st.characters(exclude_categories=())))
def test_shown_text_loses_control_characters_and_nothing_else(text: str) -> None:
    out = shown(text)
    out.encode()
    kept = [c for c in text if not (ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000)]
    assert [c for c in out if not c.isspace()] == [c for c in kept if not c.isspace()]


async def test_documents_in_memory_are_pages_whatever_they_hold() -> None:
    text = "half \ud800 a pair\0"
    corpus = Corpus([Document(id="d", title="A\nB", text=text, hash="0")])
    page = await corpus.find("A B")
    assert page is not None and page.name == "A B" and page == await corpus.find("d")
    assert corpus.index.search("pair", 1)[0].id == "d"
