"""Curation: corpora, families, grading, filters, Pass@N, releases. Nothing here knows Prefect or torch."""

import logging

logging.getLogger("pipeline").setLevel(logging.INFO)
