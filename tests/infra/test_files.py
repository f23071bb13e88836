"""One process works in a folder at a time; a file is whole or not there."""

import subprocess
import sys
import textwrap

import pytest

from infra.files import FolderInUse, locked, write_whole
from infra.settings import ROOT


def test_a_second_process_is_refused_and_told_who_works(tmp_path):
    code = """
        import sys
        from pathlib import Path
        from infra.files import locked
        with locked(Path(sys.argv[1])):
            print("locked", flush=True)
            sys.stdin.read()
        """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "locked\n"
    with pytest.raises(FolderInUse, match=f"process {holder.pid} works on this run"), locked(tmp_path):
        pass
    holder.kill()  # -9: nothing of the holder's own runs any more
    holder.communicate()
    with locked(tmp_path):
        pass


def test_the_lock_is_free_again_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    with locked(tmp_path):
        pass


def test_a_file_that_could_not_be_written_leaves_what_was_there(tmp_path):
    write_whole(tmp_path / "a" / "file", b"one")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "a" / "file", "no bytes")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]
    assert (tmp_path / "a" / "file").read_bytes() == b"one"
