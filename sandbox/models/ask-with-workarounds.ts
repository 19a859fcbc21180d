/** Asks again in another form if a server refuses something dispensable. */
import { hash } from 'node:crypto'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { ToolSpec } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { workaroundFor } from './workarounds.ts'
import type { ModelReply, ModelRequest } from './provider.ts'
import type { Traits } from './traits.ts'

/** Limit of the models, and kinds of requests to them, whose traits a thread remembers. */
const MEMORY_LIMIT = 256
/** Limit of the workarounds in one call: each costs a refused request. */
const WORKAROUNDS_LIMIT = 6

const learned = new BoundedMap<string, Traits>(MEMORY_LIMIT)

/**
 * Asks, and asks again without something dispensable that the server refused. A workaround that helped is remembered for later
 * calls of the same model, or for similar calls if the cause was a value or a single tool. `optional`: fields of the dialect that
 * can be omitted.
 */
export async function askWithWorkarounds(
	order: ModelOrder,
	request: ModelRequest,
	optional: readonly string[],
	ask: (traits: Traits) => Promise<ModelReply>,
	onToolsRefused?: (message: string) => void,
): Promise<ModelReply> {
	const name = JSON.stringify([order.kind, order.base_url, order.model])
	let digest: string | undefined
	const similar = (): string => (digest ??= similarRequests(name, order, request))
	const fields = [...optional, ...Object.keys(order.sampling ?? {}), ...Object.keys(order.extra_body ?? {})]
	// Usually nothing was learned, since nearly every server accepts every request.
	const known: Traits = { ...(learned.size > 0 && and(learned.get(name), learned.get(similar()))), ...order.compat }
	if (order.compat?.developer_role) known.system_role = 'developer'
	let traits = known
	const lasting: [name: string, traits: Traits][] = []
	let refusedTools: string | undefined
	for (let left = WORKAROUNDS_LIMIT; ; left--) {
		const reply = await ask(traits)
		if (reply.status === 'answered') {
			for (const [whose, workaround] of lasting) learned.set(whose, and(learned.get(whose), workaround))
			if (refusedTools !== undefined) onToolsRefused?.(refusedTools)
			return reply
		}
		const workaround = left > 0 ? workaroundFor(reply.failure, { order, request, traits, known, fields }) : undefined
		if (!workaround) return reply
		const { traits: added, holds } = workaround
		traits = and(traits, added)
		if (added.tools === false) refusedTools = reply.failure.message
		if (holds) lasting.push([holds === 'for the model' ? name : similar(), added])
		// The attachments may have been the reason for the earlier refusals, too.
		else if (added.unreadable) lasting.length = 0
	}
}

/** Identifies requests with the same settings and tools: what one agent or client requests must not change the requests of others. */
function similarRequests(name: string, { params, sampling }: ModelOrder, { tools, form }: ModelRequest): string {
	const settings = JSON.stringify([params, sampling, digestOfTools(tools), form])
	return `${name} ${hash('sha256', settings, 'base64url')}`
}

const digests = new WeakMap<readonly ToolSpec[], string>()

/** Computed once for each list. */
function digestOfTools(tools: readonly ToolSpec[]): string {
	let digest = digests.get(tools)
	if (digest === undefined) digests.set(tools, (digest = hash('sha256', JSON.stringify(tools), 'base64url')))
	return digest
}

function and(known: Traits = {}, more: Traits = {}): Traits {
	const drop = new Set([...(known.drop ?? []), ...(more.drop ?? [])])
	return { ...known, ...more, ...(drop.size > 0 && { drop: [...drop] }) }
}
