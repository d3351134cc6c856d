# fish completion for mind, printed by `mind completion fish`.
# The program itself lists the completions, so this file never falls behind it.
function __mind_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l plain (string unescape -- "$current"; or string trim --left --chars "'\"" -- "$current")
    for line in (_MIND_COMPLETE=1 $before[1] $before[2..-1] "$plain" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            printf '%s\n' $line
        end
    end
end
complete -c mind -f -k -a '(__mind_complete)'
