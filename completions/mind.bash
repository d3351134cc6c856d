# bash completion for mind: source this file, or put it into a bash-completion folder.
# The program itself says what may follow, so this file never falls behind it.
_mind() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o default 2>/dev/null ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <(_MIND_COMPLETE=1 "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _mind mind
