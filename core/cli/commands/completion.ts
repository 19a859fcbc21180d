import { CliError } from '../contract.ts'
import type { Register } from '../contract.ts'
import { scripts } from '../completion-scripts.ts'

export const register: Register = (program, cli) => {
	const { out } = cli
	const completion = program
		.command('completion')
		.description('Complete commands, options and the names of agents with the tab key')
		.addHelpText('after', examples)

	for (const [shell, script] of Object.entries(scripts)) {
		completion
			.command(shell)
			.description(`Show the script for ${shell}`)
			.action(() => out.write(script))
	}

	// What the scripts call with each press of the key: the words so far, of which the last is the one in the making.
	completion
		.command('words [words...]', { hidden: true })
		.allowUnknownOption()
		.action(async (words: string[]) => {
			const { candidates } = await import('../candidates.ts')
			const found = await candidates(cli, words).catch((error: unknown) => {
				if (error instanceof CliError) return [] // no gateway, no names
				throw error
			})
			for (const one of found) out.write(`${one}\n`)
		})
}

const examples = `
Examples:
  svc completion bash > ~/.local/share/bash-completion/completions/svc
  svc completion zsh > "\${fpath[1]}/_svc"
  svc completion fish > ~/.config/fish/completions/svc.fish
  source <(svc completion bash)`
