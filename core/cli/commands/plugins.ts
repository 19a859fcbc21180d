import type { Register } from '../contract.ts'
import { inCommands } from '../in-commands.ts'
import { pick } from '../pick.ts'

interface Plugin {
	name: string
	version: string | null
	state: 'running' | 'failed'
	last_error: string | null
	generation: number | null
}

export const register: Register = (program, cli) => {
	program
		.command('plugins [name]')
		.description('Show the plugins and what is wrong with them')
		.addHelpText('after', examples)
		.action(async (name?: string) => {
			const plugins = await cli.api.request<Plugin[]>('GET', '/v1/plugins')
			if (name === undefined) {
				cli.out.answer(plugins, (list, style) =>
					style.table(
						['plugin', 'version', 'state', 'generation', 'what is wrong'],
						list.map((one) => [one.name, one.version, one.state, one.generation, wrongWith(one)]),
					),
				)
				return
			}
			const plugin = pick(plugins, name, { kind: 'plugin', id: (one) => one.name, names: (one) => [one.name] })
			cli.out.answer(plugin, (one, style) =>
				style.fields([
					['plugin', one.name],
					['version', one.version ?? '-'],
					['state', one.state],
					['generation', one.generation ?? '-'],
					['what is wrong', wrongWith(one) ?? 'nothing'],
				]),
			)
		})
}

function wrongWith({ last_error }: Plugin): string | null {
	return last_error && inCommands(last_error)
}

const examples = `
Examples:
  svc plugins
  svc plugins memory
  svc plugins --json`
