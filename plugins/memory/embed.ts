/** Embeddings of texts that are not kept, by the embedder of an agent. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { TextEmbeddings } from './contract.ts'
import { BATCH } from './embedders.ts'
import type { EmbedderOf } from './embedders.ts'
import type { IndexThread } from './search/thread.ts'

/** Texts that the index thread hashes in one go: searches wait behind them. */
const HASH_BATCH = 8

/** As `LongTermMemory.embed`. */
export function embedBy(
	{ signal }: Pick<Context, 'signal'>,
	{ embedderOf, thread }: { embedderOf: EmbedderOf; thread: Pick<IndexThread, 'ask'> },
): (agent: AgentRef, texts: readonly string[], caller: AbortSignal) => Promise<TextEmbeddings> {
	return async (agent, texts, caller) => {
		const { id, embed } = await embedderOf(agent)
		const both = AbortSignal.any([signal, caller])
		const vectors: Float32Array[] = []
		while (vectors.length < texts.length) {
			both.throwIfAborted()
			const next = texts.slice(vectors.length, vectors.length + (embed ? BATCH : HASH_BATCH))
			vectors.push(...(embed ? await embed(next, both) : await thread.ask('hash', { texts: next })))
		}
		return { embedder: id, vectors }
	}
}
