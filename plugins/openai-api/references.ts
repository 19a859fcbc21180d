/** Items that a request references by their ids instead of sending them again. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import { wrong } from './errors.ts'
import { hexOf } from './ids.ts'
import type { InputItem } from './items.ts'
import { outputOf } from './response.ts'
import { readResponse } from './stored.ts'

/** Limit of references: each is read from the store. */
const LIMIT = 256
/** Limit of their total size: that of a body. A hundred bytes of a request may name an item of a megabyte. */
const CHARACTERS = 1024 * 1024

/** The same input with the items themselves. Throws `invalid_request` for items that are not in a stored response of this owner. */
export async function resolved(
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
		if (++references > LIMIT)
			throw wrong('input', `input names more than ${LIMIT} items by their ids; send them instead`)
		const found = await find(ctx, agent, owner, item.id)
		if (!found) {
			const why = 'which is no output of a response of this agent that is kept; send the item itself'
			throw wrong(`input[${at}].id`, `input[${at}] names the item "${String(item.id).slice(0, 64)}", ${why}`)
		}
		characters += JSON.stringify(found).length
		if (characters > CHARACTERS)
			throw wrong(
				'input',
				`the items that input names by their ids come to more than ${CHARACTERS} characters; name fewer`,
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
