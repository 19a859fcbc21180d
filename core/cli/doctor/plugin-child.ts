/**
 * Loads third-party plugins one after another, in a process of its own: their code may hang or end the process.
 * It imports their files and checks their settings as the gateway does, and never calls `start`.
 *
 *     node plugin-child.ts HOME [NAME…]    without the named plugins, which have already been reported
 */
import { join } from 'node:path'
import { sendToParent } from '../child.ts'
import { readConfig } from '../../host/config.ts'
import { define } from '../../host/definition.ts'
import { messageOf } from '../../errors.ts'
import { Loader } from '../../host/loader.ts'
import { desiredState } from '../../host/desired-state.ts'
import type { WantedPlugin } from '../../host/desired-state.ts'

/** Before a plugin is loaded, and after it. */
export type PluginReport = { name: string; loading: true } | { name: string; problem: string | null }

const [home = '', ...reported] = process.argv.slice(2)
const { plugins, refuse } = desiredState(readConfig({ home, env: process.env }))
const loader = new Loader(new URL('../../../plugins/', import.meta.url), join(home, 'plugins'))
const running = new Set(plugins.map(({ name }) => name))

process.on('disconnect', () => process.exit(0))
for (const plugin of plugins) {
	const { name } = plugin
	if (plugin.builtIn || reported.includes(name)) continue
	await sendToParent<PluginReport>({ name, loading: true })
	await sendToParent<PluginReport>({ name, problem: await problemOf(plugin) })
}
process.exit(0)

async function problemOf(plugin: WantedPlugin) {
	const { name, path } = plugin
	try {
		const loaded = await loader.load(name, false, path)
		const defined = define(plugin, loaded)
		if (Array.isArray(defined)) return refuse(defined).message
		const missing = loaded.plugin.needs?.find((need) => !running.has(need))
		return missing === undefined ? null : `plugin "${name}" needs plugin "${missing}", which is not switched on`
	} catch (error) {
		return messageOf(error)
	}
}
