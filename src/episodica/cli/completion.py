"""`episodica completion`: what a shell needs to complete the command."""

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from episodica.cli.screen import OK, app

SCRIPTS = {
    "bash": """\
_episodica() {
    local line words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=()
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(episodica completion answer -- "${words[@]}" 2>/dev/null)
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _episodica episodica
""",
    "zsh": """\
#compdef episodica
_episodica() {
    local -a found
    found=("${(@f)$(episodica completion answer -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z "${found[*]}" ]]; then _files
    elif [[ ${found[1]} == *= ]]; then compadd -S '' -- "${found[@]}"
    else compadd -- "${found[@]}"
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _episodica "$@"; else compdef _episodica episodica; fi
""",
    "fish": """\
function __episodica
    set -l words (commandline -opc)[2..] (commandline -ct)
    set -l found (episodica completion answer -- $words 2>/dev/null)
    if count $found >/dev/null
        printf '%s\\n' $found
    else
        __fish_complete_path $words[-1]
    end
end
complete -c episodica -f -a '(__episodica)'
""",
}


@app.command
def completion(
    shell: Literal["bash", "zsh", "fish", "answer"],
    /,
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
) -> int:
    """Print a script that completes verbs, options, key paths and their values, recipes and models.

    In bash: eval "$(episodica completion bash)"; in zsh the same with zsh; in fish: episodica completion fish | source.
    Put the line into the shell's start-up file to have it in every terminal.

    Parameters
    ----------
    shell
        bash, zsh or fish; the scripts ask for `answer`, with the words typed so far
    """
    if shell != "answer":
        sys.stdout.write(SCRIPTS[shell])
        return OK
    from episodica.cli import VERBS
    from episodica.cli.candidates import candidates

    for name in candidates(words, VERBS):
        sys.stdout.write(f"{name}\n")
    return OK
