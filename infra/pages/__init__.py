"""Where pages come from: a stored world, documents in memory, a folder of HTML, a ZIM file, or the web.

`base` says what a page is, `corpus` holds pages in memory, `local` reads folders and ZIM files into it, `web` fetches,
`extract` turns HTML into text in processes of its own (`workers`), `deny` hides pages, `place` picks by a user's word.
What a page holds is data: nothing in it makes a look-up hang or raise anything but `PageError`.
"""
