import type { Command } from '../command.ts'
import { scripts } from '../completion-scripts.ts'

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
