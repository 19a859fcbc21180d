/** A plugin that gives a test its context, to use services and the store of a gateway in this process. */
import type { Context } from '../../core/plugin.ts'

const KEY = 'svcTestContexts'
const contexts: Record<string, Context> = {}
Object.assign(globalThis, { [KEY]: contexts })
let count = 0

export interface ContextPlugin<Config> {
	/** For `files` of a gateway. Its configuration needs `plugins: {lender: true}`. */
	files: Record<string, string>
	/** The context of the newest instance. */
	context(): Context<Config>
}

/** `needs`: the plugins that must start before it. Several gateways of a process can have such plugins at the same time. */
export function contextPlugin<Config = unknown>(...needs: string[]): ContextPlugin<Config> {
	const id = `${++count}`
	const start = `(ctx) => void (globalThis.${KEY}[${id}] = ctx)`
	const code = `export default { name: 'lender', needs: ${JSON.stringify(needs)}, start: ${start} }`
	return { files: { 'plugins/lender/index.js': code }, context: () => contexts[id] as Context<Config> }
}
