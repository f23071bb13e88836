"""One grader for curation, reward and evaluation: `grade(spec, text)` reads one final answer and judges it by the gold's type."""

from pipeline.grading.code import CODE
from pipeline.grading.final import final_answer
from pipeline.grading.grader import VERSION, Grade, Verdict, agrade, grade
from pipeline.grading.workers import WORKERS


def close() -> None:
    """End the grader's processes; the next grade that needs one starts it again."""
    WORKERS.close()
    CODE.close()


__all__ = ["VERSION", "Grade", "Verdict", "agrade", "close", "final_answer", "grade"]
