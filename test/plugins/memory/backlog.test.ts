import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { embeddingsOf } from '../../../plugins/memory/embeddings.ts'
import type { Embeddings } from '../../../plugins/memory/embeddings.ts'

/** More steps than there are between the end of an attempt and that of its backlog. */
const STEPS = 20

void t.test('a memory that comes while the last embedding is completed gets one, too', async (t) => {
	const agent = { name: 'ada', uid: 'one' }
	const store = {
		get: async ([, , id]: string[]) => ({ value: { id, content: id } }),
		commit: async () => [],
	}
	for (let steps = 0; steps < STEPS; steps++) {
		const asked: string[] = []
		const embedder = {
			id: 'a model',
			async embed(texts: readonly string[]) {
				asked.push(...texts)
				return texts.map(() => Float32Array.of(1))
			},
		}
		const comeLater = async (): Promise<void> => {
			for (let step = 0; step < steps; step++) await Promise.resolve()
			await embeddings.make(agent, embedder, ['second'])
		}
		let coming: Promise<void> | undefined
		const index = {
			async embedded() {
				coming ??= comeLater()
			},
		}
		const context = { store, signal: new AbortController().signal } as unknown as Context
		const embeddings: Embeddings = embeddingsOf(
			context,
			async () => embedder,
			() => index,
		)
		await embeddings.make(agent, embedder, ['first'])
		await coming
		await nextTurn()
		t.strictSame(asked, ['first', 'second'], `after ${steps} steps`)
	}
})
