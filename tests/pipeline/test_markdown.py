from pipeline.markdown import table


def test_what_models_and_users_wrote_stays_in_its_cell_and_is_no_markup() -> None:
    hostile = "a|b\nc\x1b[31m<script>x</script> & d"
    assert table(("name", "n"), [(hostile, 1)]).splitlines() == [
        "| name | n |",
        "| --- | --- |",
        "| a\\|b c [31m&lt;script&gt;x&lt;/script&gt; &amp; d | 1 |",
    ]
