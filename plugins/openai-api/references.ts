/** Items that a request references by their ids instead of sending them again. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import { paramError } from './errors.ts'
import { hexOf } from './ids.ts'
import type { InputItem } from './items.ts'
import { outputOf } from './response.ts'
import { readResponse } from './stored.ts'

/** References per request. Each is read from the store. */
const REFERENCE_LIMIT = 256
/** Characters of all referenced items. A hundred bytes of a request may refer to an item of a megabyte. */
const CHARACTER_LIMIT = 1024 * 1024

/** Replaces references by their items. Throws `invalid_request` for items that no stored response of this owner contains. */
export async function resolveReferences(
	ctx: Pick<Context, 'store' | 'use'>,
	agent: AgentRef,
	owner: string,
	input: string | InputItem[],
): Promise<string | InputItem[]> {
	if (typeof input === 'string') return input
	let references = 0
	let characters = 0
	const items: InputItem[] = []
	for (const [at, item] of input.entries()) {
		if (item.type !== 'item_reference') {
			items.push(item)
			continue
		}
		if (++references > REFERENCE_LIMIT)
			throw paramError('input', `input references more than ${REFERENCE_LIMIT} items by id; send the items themselves`)
		const found = await find(ctx, agent, owner, item.id)
		if (!found) {
			const why = 'which is not an output of a stored response of this agent; send the item itself'
			throw paramError(`input[${at}].id`, `input[${at}] references the item "${String(item.id).slice(0, 64)}", ${why}`)
		}
		characters += JSON.stringify(found).length
		if (characters > CHARACTER_LIMIT)
			throw paramError(
				'input',
				`the items that input references by id have more than ${CHARACTER_LIMIT} characters together; reference fewer`,
			)
		items.push(found)
	}
	return items
}

async function find(
	ctx: Pick<Context, 'store' | 'use'>,
	agent: AgentRef,
	owner: string,
	id: unknown,
): Promise<InputItem | undefined> {
	const [, own] = /^(?:msg|fc)_([0-9a-f]{32})\d{0,3}$/.exec(typeof id === 'string' ? id : '') ?? []
	const record = own === undefined ? undefined : await readResponse(ctx, `resp_${hexOf(agent.uid)}${own}`, owner)
	if (!record?.end || !('answer' in record.end)) return undefined
	return outputOf(record.id, record.end.answer).find((item) => item.id === id)
}
