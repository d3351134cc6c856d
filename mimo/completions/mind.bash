# bash completion for mind, printed by `mind completion bash`.
# The program itself lists the completions, so this file never falls behind it.
_mind() {
    local line word help rest left quote='' mark=0 at=0 last=0 i
    local -a typed=() words=() helps=()
    COMPREPLY=()

    # Bash takes words apart at characters such as `=` and `:`: join those that no space separates.
    # It replaces only its own last word, so `mark` characters of the joined one are not repeated.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        rest=${COMP_LINE:at}
        line=${rest#"${rest%%[![:space:]]*}"}
        if [[ $i -gt 0 && -n $word && $line == "$rest" && $line == "$word"* ]]; then
            mark=${#typed[last]}
            typed[last]+=$word
        else
            mark=0 last=$i
            typed[last]=$word
        fi
        ((at += ${#rest} - ${#line} + ${#word}))
    done
    [[ $mark -gt 0 && ${COMP_WORDS[COMP_CWORD]} == [=:] ]] && mark=${#typed[last]}
    case ${typed[last]:mark} in [\'\"]*) quote=${typed[last]:mark:1} ;; esac
    left=${typed[last]:0:mark}
    left=${left//[\\\'\"]/}
    for i in "${!typed[@]}"; do
        typed[i]=${typed[i]//[\\\'\"]/}  # plain words: nothing in them is evaluated
    done
    unset 'typed[0]'

    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o default 2>/dev/null
            continue
        fi
        word=${line%%$'\t'*}
        word=${word#"$left"}
        # Quoted: topics and tags may come from other authors, and bash inserts them as they are.
        case $quote$word in
            \'*\'* | \"*[\"\$\`\\!]*) [[ $quote ]] && continue ;;
        esac
        [[ $quote ]] || printf -v word %q "$word"
        words+=("$word")
        help=
        [[ $line == *$'\t'* ]] && help=${line#*$'\t'}
        helps+=("$help")
    done < <(_MIND_COMPLETE=1 "$1" "${typed[@]}" 2>/dev/null)

    COMPREPLY=("${words[@]}")
    # Several candidates are listed, not inserted, so each may have its description beside it. Keys
    # that insert all of them (37, 42), and other programs, get the words alone.
    ((${#words[@]} > 1)) && [[ -n ${helps[*]//[[:space:]]/} ]] || return 0
    [[ ${COMP_TYPE:-37} == 37 || $COMP_TYPE == 42 ]] && return 0
    local width=0 columns=${COLUMNS:-80}
    for word in "${words[@]}"; do
        ((${#word} > width)) && width=${#word}
    done
    ((columns - width > 12)) || return 0
    for ((i = 0; i < ${#words[@]}; i++)); do
        printf -v line '%-*s  %s' "$width" "${words[i]}" "${helps[i]}"
        # As wide as the screen, so that bash makes no columns of them.
        printf -v line '%-*s' "$((columns - 2))" "${line:0:columns-2}"
        COMPREPLY[i]=$line
    done
}
complete -o nosort -F _mind mind 2>/dev/null || complete -F _mind mind
