/** `svc plugins [name]`: the plugins of the running gateway, and what is wrong with them. */
import type { PluginStatus } from '../../status.ts'
import type { Cli } from '../contract.ts'
import { pick } from '../pick.ts'

/** All of them in a table, or one in full. */
export async function showState({ api, out }: Cli, name: string | undefined): Promise<void> {
	const plugins = await api.request<PluginStatus[]>('GET', '/v1/plugins')
	if (name === undefined) {
		out.answer(plugins, (list, style) =>
			style.table(
				['plugin', 'version', 'state', 'generation', 'what is wrong'],
				list.map((one) => [one.name, one.version, one.state, one.generation, one.last_error]),
			),
		)
		return
	}
	const plugin = pick(plugins, name, { kind: 'plugin', id: (one) => one.name, names: (one) => [one.name] })
	out.answer(plugin, (one, style) =>
		style.fields([
			['plugin', one.name],
			['version', one.version ?? '-'],
			['state', one.state],
			['generation', one.generation ?? '-'],
			['what is wrong', one.last_error ?? 'nothing'],
		]),
	)
}
