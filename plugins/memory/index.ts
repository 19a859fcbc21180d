import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { definePlugin } from '../../core/plugin.ts'
import type { Context, ErrorCode } from '../../core/plugin.ts'
import type {} from '../runs/contract.ts'
import events from './events.ts'
import { compactionsOf } from './compaction/compactions.ts'
import type { LongTermMemory, MemoryCode, MemorySettings } from './contract.ts'
import { Counts } from './counts.ts'
import { embedBy, embeddersOf } from './embedders.ts'
import { embeddingsOf } from './embeddings.ts'
import { keepFacts } from './facts.ts'
import { indexThread } from './search/thread.ts'
import { memoriesOf } from './memories.ts'
import { memoryIndex } from './memory-index.ts'
import type { MemoryIndex } from './memory-index.ts'
import { addPrimitives } from './primitives.ts'
import { addToPrompt } from './prompt.ts'
import { relatedOf } from './related.ts'
import { routes } from './routes.ts'

/** Long-term memory: facts that an agent stores, and finds by meaning and by keywords. */
export default definePlugin<MemorySettings, LongTermMemory>({
	name: 'memory',
	needs: ['auth', 'agents'],
	events,
	errors: {
		embedding_failed: { status: 502, description: 'The embedding model did not return an embedding.' },
	} satisfies Record<MemoryCode, ErrorCode>,
	start(ctx): LongTermMemory {
		const folder = join(ctx.gateway.home, 'data', 'index')
		const failed = (error: unknown): void => ctx.log.error({ err: error }, 'the search index failed; it is rebuilt')
		const thread = ctx.own(indexThread({ folder, index_mib: ctx.config.index_mib }, failed), 'index thread')
		const embedderOf = embeddersOf(ctx)
		const embeddings = embeddingsOf(ctx, embedderOf, () => index)
		const index: MemoryIndex = memoryIndex(
			ctx,
			thread,
			(agent, embedder, ids) => void embeddings.make(agent, embedder, ids),
		)
		const counts = new Counts(ctx.store)
		const { resume, ...compaction } = compactionsOf(ctx, { counts, index, embeddings })
		const memories: LongTermMemory = {
			...memoriesOf(ctx, { counts, index, embeddings }),
			related: relatedOf(ctx, { index, embeddings }),
			embed: embedBy(ctx, embedderOf, thread),
			...compaction,
		}
		addPrimitives(ctx, memories)
		addToPrompt(ctx, memories)
		ctx.extend('facts', { keep: (agent, facts) => keepFacts(memories, agent, facts) })
		ctx.on('agent.deleted', async ({ payload }) => {
			const uid = String(payload.uid)
			embeddings.forget(uid)
			counts.forget(uid)
			await index.drop(uid, true)
		})
		const maintain = async (): Promise<void> => {
			await ctx.serving
			await removeOrphanedFiles(ctx, folder)
			await resume()
		}
		maintain().catch((error: unknown) => ctx.log.error({ err: error }, 'the maintenance of long-term memory failed'))
		return memories
	},
	http: routes,
})

/** Deletes the index files of agents that were deleted while this plugin was not running. */
async function removeOrphanedFiles(ctx: Context, folder: string): Promise<void> {
	const files = await readdir(folder).catch(() => [])
	if (files.length === 0) return
	const uids = new Set<string>()
	for await (const { uid } of ctx.use('agents').list()) uids.add(uid)
	for (const file of files) {
		if (!uids.has(file.split('.')[0] ?? '')) await rm(join(folder, file), { force: true })
	}
}
