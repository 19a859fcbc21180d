import type { Command } from '../command.ts'

/**
 * The completion script of each shell. It passes the words of the command line unchanged to `svc completion words`, which prints
 * one candidate per line. Without candidates, the shell offers files.
 */
const scripts = {
	bash: `_svc() {
	local IFS=$'\\n' svc=\${BASH_ALIASES[\${COMP_WORDS[0]}]:-'"\${COMP_WORDS[0]}"'}
	COMPREPLY=($(eval "$svc"' completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}"' 2>/dev/null))
}
complete -o default -F _svc svc
`,
	zsh: `#compdef svc
# zsh completes the expansion of an alias. A function does the same as the alias, and zsh completes it by its own name.
if (( \${+aliases[svc]} )); then
	functions[svc]="\${aliases[svc]} "'"$@"'
	unalias svc
fi
_svc() {
	local -a found
	found=("\${(@f)$("\${words[1]}" completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "\${found[1]}" ]]; then compadd -a found; else _files; fi
}
if [[ "$funcstack[1]" = "_svc" ]]; then _svc "$@"; else compdef _svc svc; fi
`,
	fish: `function __svc_words
	set -l words (commandline -opc) (commandline -ct)
	set -l found ($words[1] completion words -- $words[2..-1] 2>/dev/null)
	if test -n "$found"
		printf '%s\\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c svc -f -a '(__svc_words)'
`,
} as const

export default {
	description: 'Complete commands, options and the names of agents with the tab key',
	examples: `
Examples:
  svc completion bash > ~/.local/share/bash-completion/completions/svc
  svc completion zsh > "\${fpath[1]}/_svc"
  svc completion fish > ~/.config/fish/completions/svc.fish
  source <(svc completion bash)`,
	commands: {
		...Object.fromEntries(Object.entries(scripts).map(([shell, script]) => [shell, showing(shell, script)])),
		// The scripts call this with each press of the tab key. The last of the words is incomplete.
		words: {
			hidden: true,
			arguments: '[words...]',
			async run(cli, { words }: { words: string[] }) {
				const { candidates } = await import('../candidates.ts')
				for (const one of await candidates(cli, words)) cli.out.write(`${one}\n`)
			},
		},
	},
} satisfies Command

function showing(shell: string, script: string): Command {
	return {
		description: `Show the script for ${shell}`,
		run({ out }) {
			out.write(script)
		},
	}
}
