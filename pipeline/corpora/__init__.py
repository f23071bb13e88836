"""Corpora: a `World` of documents and typed facts, the default one (`atlas`), and a reader for a user's own documents."""
