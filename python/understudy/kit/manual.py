"""`understudy manual`: the man page and shell completions, made from the command line's parser."""

from __future__ import annotations

import argparse

from understudy import __version__
from understudy.kit import table

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser) -> None:
    parser.add_argument("--completion", choices=SHELLS, metavar="SHELL", help=f"completion for {', '.join(SHELLS)}")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it here (default: standard output)")
    parser.epilog = ('Man page: understudy manual -o ~/.local/share/man/man1/understudy.1. Completion: '
                     'eval "$(understudy manual --completion bash)".')  # fmt: skip


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (choices,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return choices.choices


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions
            if not action.option_strings and not isinstance(action, argparse._SubParsersAction)]  # fmt: skip


# ---- man page ----


def roff(text: str) -> str:
    """Text of a man page: no character of it is a command."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


def described(parser: argparse.ArgumentParser) -> list[str]:
    """An entry per argument and option."""
    lines = []
    for action in [*arguments(parser), *options(parser)]:
        value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
        names = ", ".join(action.option_strings) + value if action.option_strings else value.strip()
        lines += [".TP", f".B {roff(names)}", roff(action.help or "")]
    return lines


def man_page(parser: argparse.ArgumentParser) -> str:
    lines = [f'.TH UNDERSTUDY 1 "" "understudy {__version__}"', ".SH NAME", roff(f"understudy - {parser.description}"),
             ".SH SYNOPSIS", ".B understudy", roff("COMMAND [ARGUMENT ...]"), ".SH OPTIONS", *described(parser),
             ".SH COMMANDS"]  # fmt: skip
    for name, command in commands(parser).items():
        usage = " ".join(command.format_usage().removeprefix("usage: ").split())
        lines += [f".SS {roff(name)}", roff(command.description or ""), ".PP", f".B {roff(usage)}", *described(command)]
        if command.epilog:
            lines += [".PP", roff(command.epilog)]
    lines += [".SH EXIT STATUS", "0: nothing wrong. 1: something was found. 2: the command was used wrongly."]
    return "\n".join(lines) + "\n"


# ---- completion ----


def words(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Command -> its options; "" -> the commands and the options of all."""
    found = {name: [option for action in options(command) for option in action.option_strings]
             for name, command in commands(parser).items()}  # fmt: skip
    return {"": [*found, *(option for action in options(parser) for option in action.option_strings)], **found}


def bash(parser: argparse.ArgumentParser) -> str:
    cases = "".join(f"        {name}) words='{' '.join(known)}' ;;\n" for name, known in words(parser).items() if name)
    return f"""_understudy() {{
    local words='{' '.join(words(parser)[''])}' word=${{COMP_WORDS[COMP_CWORD]}}
    if [ "$COMP_CWORD" -gt 1 ]; then
        case ${{COMP_WORDS[1]}} in
{cases}        esac
        case $word in -*) ;; *) words= ;; esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _understudy understudy
"""


def fish(parser: argparse.ArgumentParser) -> str:
    lines = []
    for name, command in commands(parser).items():
        lines.append(f"complete -c understudy -n __fish_use_subcommand -a '{name}' -d '{quoted(command.description)}'")
        for action in options(command):
            names = " ".join(f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                             for option in action.option_strings)  # fmt: skip
            lines.append(f"complete -c understudy -n '__fish_seen_subcommand_from {name}' {names} -d '{quoted(action.help)}'")
    return "\n".join(lines) + "\n"


def quoted(text: str | None) -> str:
    return (text or "").replace("\\", "\\\\").replace("'", "\\'")


def completion(shell: str, parser: argparse.ArgumentParser) -> str:
    if shell == "fish":
        return fish(parser)
    # zsh runs completions that were written for bash.
    return ("autoload -Uz bashcompinit && bashcompinit\n" if shell == "zsh" else "") + bash(parser)


def run(settings) -> int:
    from understudy.__main__ import make_parser

    parser = make_parser()
    text = completion(settings.completion, parser) if settings.completion else man_page(parser)
    if settings.output:
        table.write(settings.output, text)
    else:
        print(text, end="")
    return 0
