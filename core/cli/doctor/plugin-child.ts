/**
 * The program of a child process that loads third-party plugins one after another, since their code may hang or end the process.
 * It imports their files and checks their settings as the gateway does, and never calls `start`.
 *
 *     node plugin-child.ts HOME NAME…
 */
import { join } from 'node:path'
import { sendToParent } from '../child.ts'
import { readConfig } from '../../host/config.ts'
import { define } from '../../host/definition.ts'
import { messageOf } from '../../errors.ts'
import { Loader } from '../../host/loader.ts'
import type { LoadReport } from './load-each.ts'
import { desiredState } from '../../host/desired-state.ts'
import type { WantedPlugin } from '../../host/desired-state.ts'

const [home = '', ...names] = process.argv.slice(2)
const { plugins, refuse } = desiredState(readConfig({ home, env: process.env }))
const loader = new Loader(join(home, 'plugins'))
const running = new Set(plugins.map(({ name }) => name))

process.on('disconnect', () => process.exit(0))
for (const plugin of plugins) {
	const { name } = plugin
	if (!names.includes(name)) continue
	await sendToParent<LoadReport>({ loading: name })
	await sendToParent<LoadReport>({ loaded: name, problem: await problemOf(plugin) })
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
