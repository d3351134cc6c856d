# fish completion for mind: put this file into ~/.config/fish/completions/.
# The program itself says what may follow, so this file never falls behind it.
function __mind_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in (_MIND_COMPLETE=1 mind $before[2..-1] "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end
complete -c mind -f -a '(__mind_complete)'
