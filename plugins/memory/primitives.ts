import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'
import type { LongTermMemory, Memory } from './contract.ts'
import { MAX_REPLACED, MAX_RESULTS } from './memories.ts'

const CONTENT_CHARACTERS = 32_000
export const QUERY_CHARACTERS = 4_000
export const DEFAULT_RESULTS = 10

export const content = Joi.string()
	.min(1)
	.max(CONTENT_CHARACTERS)
	.pattern(/\S/)
	.message('{#label} must contain more than spaces')
	.description('What to keep, in words that make sense by themselves; at most 32,000 characters.')
export const tags = Joi.array()
	.items(Joi.string().min(1).max(64))
	.max(16)
	.unique()
	.description('Labels to search by, at most 16.')
export const replaces = Joi.array()
	.items(Joi.string().min(1).max(64))
	.max(MAX_REPLACED)
	.unique()
	.description('Ids of older memories that are no longer true; they stay, linked to this one and ranked below it.')
export const limit = Joi.number().integer().min(1).max(MAX_RESULTS).description('Maximum number; default 10.')

/** Characters of all contents in one result for a model; longer contents are cut. */
const SHOWN_CHARACTERS = 40_000

/** `memory.store`, `memory.recall`, `memory.forget`. */
export function addPrimitives(ctx: Pick<Context, 'primitive'>, memories: LongTermMemory): void {
	ctx.primitive({
		name: 'memory.store',
		description:
			'Stores a fact in long-term memory, where it outlives this conversation. Use it for what will matter later: names, dates, wishes, decisions. If it contradicts a memory that you know, give the id of that memory in replaces. Storing the same fact again is harmless.',
		parameters: Joi.object({ content: content.required(), tags, replaces }),
		async run(args, { agent, key, emit }) {
			const wanted = args as { content: string; tags?: string[]; replaces?: string[] }
			const stored = await memories.store(agent, { ...wanted, key })
			emit(storedEvent(stored))
			const { id, created_at, replaces: older } = stored
			return { id, created_at, ...(older && { replaces: older }) }
		},
	})
	ctx.primitive({
		name: 'memory.recall',
		concurrent: true,
		description:
			'Searches long-term memory, by meaning and by keywords. Use it whenever what you know from earlier may help.',
		parameters: Joi.object({
			query: Joi.string().min(1).max(QUERY_CHARACTERS).required().description('What you want to know.'),
			limit,
			tags: tags.description('Only memories that have all of these tags.'),
		}),
		async run(args, { agent, emit }) {
			const { query, limit: most = DEFAULT_RESULTS, tags: wanted } = args as unknown as Recall
			const found = await memories.search(agent, query, most, wanted)
			emit({
				event_type: 'memory.recalled',
				payload: { count: found.length, memory_ids: found.map(({ id }) => id) },
			})
			const share = Math.floor(SHOWN_CHARACTERS / Math.max(1, found.length))
			return { memories: found.map((memory) => ({ ...memory, content: cut(memory.content, share) })) }
		},
	})
	ctx.primitive({
		name: 'memory.forget',
		description:
			'Deletes one memory from long-term memory permanently. Its id comes from memory.recall or memory.store.',
		parameters: Joi.object({ id: Joi.string().min(1).max(64).required().description('The id of the memory.') }),
		async run(args, { agent, emit }) {
			const id = args.id as string
			if (!(await memories.forget(agent, id)))
				throw new Fault('not_found', `there is no memory "${id}"; memory.recall returns the ids of existing memories`)
			emit({ event_type: 'memory.forgotten', payload: { memory_id: id } })
			return { id, forgotten: true }
		},
	})
}

export function storedEvent({ id, tags: kept, replaces: older }: Memory): NewEvent {
	return { event_type: 'memory.stored', payload: { memory_id: id, tags: kept, ...(older && { replaces: older }) } }
}

interface Recall {
	query: string
	limit?: number
	tags?: string[]
}

function cut(text: string, most: number): string {
	return text.length <= most ? text : `${text.slice(0, most)}… [cut: ${text.length - most} more characters]`
}
