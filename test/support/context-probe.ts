/** A plugin whose context a test uses, to call services and to read the store of a gateway in this process. */
import type { Context } from '../../core/plugin.ts'

const contexts = globalThis as unknown as Record<string, Context | undefined>
let count = 0

export interface ContextProbe<Config> {
	/** For `files` of a gateway with `plugins: {probe: true}`. */
	files: Record<string, string>
	/** The context of the running plugin. Throws if it is not running. */
	context(): Context<Config>
}

/** `start`: JavaScript for the start of the plugin, such as `ctx.primitive({…})`. */
export function contextProbe<Config = unknown>(start = ''): ContextProbe<Config> {
	// Test files share a process, so each probe has its own name.
	const slot = `probeContext${++count}`
	const source = `export default {
	name: 'probe',
	start(ctx) {
		globalThis.${slot} = ctx
		ctx.defer(() => { if (globalThis.${slot} === ctx) delete globalThis.${slot} }, 'the context for the test')
		${start}
	},
}`
	return {
		files: { 'plugins/probe/index.js': source },
		context() {
			const context = contexts[slot]
			if (!context) throw new Error('the plugin "probe" is not running; does gateway.yaml have plugins: {probe: true}?')
			return context as Context<Config>
		},
	}
}
