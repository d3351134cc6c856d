# bash completion for mind: source this file, or put it into a bash-completion folder.
# The program itself says what may follow, so this file never falls behind it.
_mind() {
    local line word
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o default 2>/dev/null ;;
            *)
                # Quoted: topics and tags may come from other authors, and bash inserts them as they are.
                printf -v word %q "${line%%$'\t'*}"
                COMPREPLY+=("$word")
                ;;
        esac
    done < <(_MIND_COMPLETE=1 "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _mind mind
