import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { definePlugin } from '../../core/plugin.ts'
import type { Context, ErrorCode } from '../../core/plugin.ts'
import events from './events.ts'
import type { SubagentCode, SubagentSettings } from './contract.ts'
import { callOf, keys } from './keys.ts'
import { settle, settleAll } from './settle.ts'
import { spawnTool } from './spawn.ts'
import { addSpawner, mayHaveSubagents } from './spawners.ts'

/** Sub-agents: runs that an agent starts, and the delivery of their results. */
export default definePlugin<SubagentSettings>({
	name: 'subagents',
	needs: ['auth', 'agents', 'runs'],
	events,
	errors: {
		subagent_limit: {
			status: 409,
			description: 'The run has started as many sub-agents, or is nested as deep, as the settings allow.',
		},
	} satisfies Record<SubagentCode, ErrorCode>,
	start(ctx) {
		let isCaughtUp = false
		ctx.primitive(spawnTool(ctx))
		for (const type of ['run.completed', 'run.failed', 'run.stopped'])
			ctx.on(type, async (event) => {
				const { run_id, agent_id } = event
				if (run_id === null || agent_id === null || (isCaughtUp && !mayHaveSubagents(agent_id))) return
				await withRetries(ctx, () => runEnded(ctx, run_id))
			})
		withRetries(ctx, () => catchUp(ctx)).then(
			() => (isCaughtUp = true),
			(error: unknown) => ctx.log.error({ err: error }, 'results of sub-agents are not delivered until the next start'),
		)
	},
})

/** Settles the ended run if it is a sub-agent, and the sub-agents that it started. */
async function runEnded(ctx: Context<SubagentSettings>, run_id: string): Promise<void> {
	// Reading the records must not delay the delivery of the event to clients.
	await nextTurn()
	const run = await ctx.use('runs').find(run_id)
	if (!run) return // deleted with its agent
	const agent = { name: run.agent, uid: run.agent_uid }
	const call = callOf(run.conversation)
	if (run.parent && call) await settle(ctx, agent, keys.spawned(agent.uid, run.parent.run_id, call))
	if (run.children) await settleAll(ctx, agent, keys.family(agent.uid, run_id))
}

/** Settles runs that ended just before the gateway stopped, or while this instance replaced another one. */
async function catchUp(ctx: Context<SubagentSettings>): Promise<void> {
	await ctx.serving
	for await (const agent of ctx.use('agents').list()) {
		for await (const _ of ctx.store.keys(keys.all(agent.uid), { limit: 1 })) addSpawner(agent.name)
		await settleAll(ctx, agent, keys.all(agent.uid))
	}
}

/** Milliseconds before each retry after an error of the store, such as on a full disk. */
const DELAYS = [1_000, 5_000, 30_000, 120_000]

async function withRetries(ctx: Context<SubagentSettings>, work: () => Promise<void>): Promise<void> {
	for (const delay of DELAYS) {
		try {
			return await work()
		} catch (error) {
			if (ctx.signal.aborted || ctx.gateway.state() === 'draining') return
			ctx.log.warn(
				{ err: error },
				`the result of a sub-agent could not be delivered; next attempt in ${delay / 1000} s`,
			)
			await pause(delay, undefined, { signal: ctx.signal, ref: false }).catch(() => {})
		}
	}
	await work()
}
