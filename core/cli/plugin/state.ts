/** `svc plugins [name]`: the plugins of the running gateway, and their problems. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { PluginStatus } from '../../status.ts'
import { isObject } from '../../util/is-object.ts'
import { isBuiltIn } from '../../util/own-files.ts'
import { CliError } from '../contract.ts'
import type { Cli } from '../contract.ts'
import { answerTable } from '../lists.ts'
import { pick } from '../pick.ts'
import { pluginsIn } from '../third-party.ts'

/** Shows all plugins as a table, or one in full. */
export async function showState(cli: Cli, name: string | undefined): Promise<void> {
	const { api, out, home } = cli
	const plugins = await api.request<PluginStatus[]>('GET', '/v1/plugins')
	if (name === undefined)
		return answerTable(cli, plugins, '(none)', (one) => ({
			plugin: one.name,
			version: one.version,
			state: one.state,
			generation: one.generation,
			problem: one.last_error,
		}))
	if (plugins.every((one) => one.name !== name)) await refuseSwitchedOff(home, name)
	const plugin = pick(plugins, name, { kind: 'plugin', id: (one) => one.name, names: (one) => [one.name] })
	out.answer(plugin, (one, style) =>
		style.fields([
			['plugin', one.name],
			['version', one.version ?? '-'],
			['state', one.state],
			['generation', one.generation ?? '-'],
			['problem', one.last_error ?? 'none'],
		]),
	)
}

/** The gateway reports only plugins that are switched on. */
async function refuseSwitchedOff(home: string, name: string): Promise<void> {
	if (!isBuiltIn(name) && !(/^\w[\w-]*$/.test(name) && existsSync(join(home, 'plugins', name)))) return
	const entry = (await pluginsIn(home))[name]
	if (isObject(entry) ? entry.enabled !== false : entry === true) return
	const key = `plugins.${name}${isObject(entry) ? '.enabled' : ''}`
	throw new CliError(
		'not_found',
		`the plugin "${name}" is not switched on; to switch it on: svc config set ${key} true`,
	)
}
