import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { embeddingsOf } from '../../../plugins/memory/embeddings.ts'
import type { Embeddings } from '../../../plugins/memory/embeddings.ts'

/** More microtasks than there are between the end of an attempt and the end of its backlog. */
const STEPS = 20

void t.test('a memory that is stored while the last embedding completes is embedded as well', async (t) => {
	const agent = { name: 'ada', uid: 'one' }
	const store = {
		get: async ([, , id]: string[]) => ({ value: { id, content: id } }),
		commit: async () => [],
	}
	for (let steps = 0; steps < STEPS; steps++) {
		const embedded: string[] = []
		const embedder = {
			id: 'a model',
			async embed(texts: readonly string[]) {
				embedded.push(...texts)
				return texts.map(() => Float32Array.of(1))
			},
		}
		const storeSecond = async (): Promise<void> => {
			for (let step = 0; step < steps; step++) await Promise.resolve()
			await embeddings.make(agent, embedder, ['second'])
		}
		let storing: Promise<void> | undefined
		const index = {
			async embedded() {
				storing ??= storeSecond()
			},
		}
		const context = { store, signal: new AbortController().signal } as unknown as Context
		const embeddings: Embeddings = embeddingsOf(
			context,
			async () => embedder,
			() => index,
		)
		await embeddings.make(agent, embedder, ['first'])
		await storing
		await nextTurn()
		t.strictSame(embedded, ['first', 'second'], `after ${steps} steps`)
	}
})
