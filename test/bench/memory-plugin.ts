/** A plugin for the measured gateway: stores and searches many memories per HTTP request. */
import type { Plugin } from '../../core/plugin.ts'
import type {} from '../../plugins/agents/contract.ts'
import type {} from '../../plugins/memory/contract.ts'

export interface StoreRequest {
	agent: string
	contents: string[]
	/** Concurrent writers, each of which stores one memory after another. */
	lanes: number
}

export interface SearchRequest {
	agent: string
	questions: string[]
}

export default {
	name: 'memory-bench',
	needs: ['memory', 'agents'],
	http(server, ctx) {
		server.route<{ Payload: StoreRequest }>({
			method: 'POST',
			path: '/v1/bench/store',
			handler: async ({ payload: { agent: name, contents, lanes } }) => {
				const agent = await ctx.use('agents').get(name)
				const left = contents.values()
				const began = performance.now()
				const lane = async (): Promise<void> => {
					for (const content of left) await ctx.use('memory').store(agent, { content })
				}
				await Promise.all(Array.from({ length: lanes }, lane))
				return { ms: performance.now() - began }
			},
		})
		server.route<{ Payload: SearchRequest }>({
			method: 'POST',
			path: '/v1/bench/search',
			handler: async ({ payload: { agent: name, questions } }) => {
				const agent = await ctx.use('agents').get(name)
				const times: number[] = []
				for (const question of questions) {
					const began = performance.now()
					await ctx.use('memory').search(agent, question, 10)
					times.push(performance.now() - began)
				}
				return { times }
			},
		})
	},
} satisfies Plugin
