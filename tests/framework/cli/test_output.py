import logging

import pytest

from celstack.cli.output import print_error, printed_warnings

LOG = logging.getLogger("celstack")


def test_warnings_of_library_code_are_printed_with_their_prefix(capsys):
    with printed_warnings():
        LOG.warning("%d images are %s", 3, "broken")

    assert capsys.readouterr().err == "celstack: warning: 3 images are broken\n"


def test_less_than_a_warning_is_not_printed(capsys):
    with printed_warnings():
        LOG.info("nothing to see")

    assert capsys.readouterr().err == ""


def test_the_handler_is_gone_afterwards_even_after_an_error():
    before = list(LOG.handlers)

    with pytest.raises(ValueError, match="no"), printed_warnings():
        raise ValueError("no")

    assert LOG.handlers == before


def test_only_one_process_of_a_machine_prints_them(monkeypatch, capsys):
    monkeypatch.setenv("LOCAL_RANK", "1")

    with printed_warnings():
        LOG.warning("once is enough")

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["\x1b[31mred", "bell\a"])
def test_what_a_terminal_would_obey_is_escaped(capsys, text):
    print_error(text)
    with printed_warnings():
        LOG.warning(text)

    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\a" not in said
    assert len(said.splitlines()) == 2
