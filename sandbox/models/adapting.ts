/** Asks again, in another way, where a server refuses what can be done without. */
import type { ModelOrder } from '../../core/protocol.ts'
import { lessonOf } from './lessons.ts'
import type { ModelReply, ModelRequest } from './provider.ts'
import type { Traits } from './traits.ts'

/** Servers and models whose traits are remembered in one thread. */
const MEMORY_LIMIT = 64
/** Lessons of one call: each is a refused request. */
const LESSONS_LIMIT = 6

const learned = new Map<string, Traits>()

/**
 * Asks, and where the server refuses something that can be done without, asks again without that. What helped is remembered
 * for later calls of the same model. `optional`: fields of the dialect that can be left out.
 */
export async function askAdapting(
	order: ModelOrder,
	request: ModelRequest,
	optional: readonly string[],
	ask: (traits: Traits) => Promise<ModelReply>,
): Promise<ModelReply> {
	const name = JSON.stringify([order.kind, order.base_url, order.model])
	const fields = [...optional, ...Object.keys(order.sampling ?? {}), ...Object.keys(order.extra_body ?? {})]
	let traits: Traits = { ...learned.get(name), ...order.compat }
	if (order.compat?.developer_role) traits.system_role = 'developer'
	let lasting: Traits | undefined
	for (let left = LESSONS_LIMIT; ; left--) {
		const reply = await ask(traits)
		if (reply.status === 'answered') {
			if (lasting) remember(name, lasting)
			return reply
		}
		const lesson = left > 0 ? lessonOf(reply.failure, { order, request, traits, fields }) : undefined
		if (!lesson) return reply
		traits = { ...traits, ...lesson.traits }
		if (lesson.lasts) lasting = { ...learned.get(name), ...lasting, ...lesson.traits }
	}
}

function remember(name: string, traits: Traits): void {
	learned.delete(name)
	learned.set(name, traits)
	const [oldest] = learned.keys()
	if (learned.size > MEMORY_LIMIT && oldest !== undefined) learned.delete(oldest)
}
