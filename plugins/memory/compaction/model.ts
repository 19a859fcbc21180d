/** Asks an agent's model by a run without tools, in a conversation of its own. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type {} from '../../agents/contract.ts'
import type {} from '../../models/contract.ts'
import type { RunRecord } from '../../runs/contract.ts'
import type { AskModel } from './plan.ts'
import { modelFailed } from './consolidation.ts'

const LOOK_AGAIN_MS = 5_000

/** Call this while the plugin starts. Returns how to get the model; undefined for the built-in provider alone. */
export function modelOf(
	ctx: Pick<Context, 'on' | 'use' | 'find' | 'signal'>,
): (agent: AgentRef, compaction: string) => Promise<AskModel | undefined> {
	const waiting = new Map<string, () => void>()
	for (const type of ['run.completed', 'run.failed', 'run.stopped']) {
		ctx.on(type, ({ run_id }) => waiting.get(run_id ?? '')?.())
	}

	const ended = async (run_id: string): Promise<RunRecord> => {
		for (;;) {
			const { promise, resolve } = Promise.withResolvers<void>()
			waiting.set(run_id, resolve)
			try {
				const run = await ctx.use('runs').get(run_id)
				if (run.ended_at !== null) return run
				await Promise.race([promise, sleep(LOOK_AGAIN_MS, undefined, { signal: ctx.signal, ref: false })])
			} finally {
				waiting.delete(run_id)
			}
		}
	}

	return async (agent, compaction) => {
		const record = await ctx.use('agents').find(agent.name)
		const choice = record && (await ctx.find('models')?.choose(record.config))
		if (!ctx.find('runs') || !choice || choice.orders[0]?.kind === 'offline') return undefined
		return async (prompt, persona) => {
			const conversation = `compaction:${compaction}`
			const request = { prompt, persona, conversation, trigger: 'compaction', tools: 'none' } as const
			const { run_id } = await ctx.use('runs').start(agent, request)
			const run = await ended(run_id)
			if (run.status !== 'completed') throw modelFailed(run.error?.message ?? `its run was ${run.status}`)
			return run.answer ?? ''
		}
	}
}
