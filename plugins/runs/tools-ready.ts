/** Waits until plugins can provide their tools, and explains why a tool is missing. */
import { messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { within } from '../../core/util/deadline.ts'

/** Longer than the 10 s that a plugin itself may wait. */
const READY_MS = 12_000
const WHY_MISSING_MS = 2_000

/** See `ToolSource`. A plugin that throws, or takes too long, is not waited for. */
export async function toolsReady(
	ctx: Pick<Context, 'extensions' | 'log'>,
	agent: AgentRef,
	signal: AbortSignal,
): Promise<void> {
	const waits = ctx.extensions('tools').map(async ({ plugin, value, run }) => {
		if (!value.ready) return
		try {
			const isReady = run(async () => value.ready?.(agent, signal))
			await within(READY_MS, 'it', isReady)
		} catch (error) {
			ctx.log.warn({ plugin, agent: agent.name }, `a run does not wait for the tools of a plugin: ${messageOf(error)}`)
		}
	})
	await Promise.all(waits)
}

/** See `ToolSource`. A plugin that throws, or takes too long, explains nothing. */
export async function whyMissing(
	ctx: Pick<Context, 'extensions'>,
	agent: AgentRef,
	name: string,
): Promise<string | undefined> {
	for (const { value, run } of ctx.extensions('tools')) {
		const asked = run(async () => value.whyMissing?.(agent, name))
		const why = await within(WHY_MISSING_MS, 'it', asked).catch(() => undefined)
		if (why !== undefined) return why
	}
	return undefined
}
