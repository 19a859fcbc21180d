/** Resources: histories of agents, and runs. */
import { Fault } from '../../core/errors.ts'
import { CONVERSATION_ID } from '../shared/conversation-id.ts'
import type { McpContext } from './call.ts'
import { stateOf } from './follow.ts'
import { page } from './pages.ts'
import { viewRun } from './views.ts'

const PAGE = 100
/** Limit of turns of a history, which has the newest ones. */
const TURNS = 200
const JSON_TYPE = 'application/json'

export const resourceTemplates = [
	{
		uriTemplate: 'svc://agents/{name}/history{?conversation}',
		name: 'history',
		title: 'History of an agent',
		description: `Messages of the agent's current session, or of another conversation as a run names it, oldest first; the newest ${TURNS} turns.`,
		mimeType: JSON_TYPE,
	},
	{
		uriTemplate: 'svc://runs/{run_id}',
		name: 'run',
		title: 'A run',
		description: 'Status, answer and open question of a run.',
		mimeType: JSON_TYPE,
	},
]

/** One for each agent. `cursor`: the `nextCursor` of the previous page. */
export async function listResources(ctx: McpContext, cursor?: string) {
	const { items, next } = await page(ctx.use('agents').list(), PAGE, cursor)
	const resources = items.map(({ name }) => ({
		uri: `svc://agents/${name}/history`,
		name: `${name}/history`,
		title: `History of ${name}`,
		mimeType: JSON_TYPE,
	}))
	return { resources, ...(next !== null && { nextCursor: next }) }
}

/** Throws `not_found`, or `invalid_request` for an invalid address. */
export async function readResource(ctx: McpContext, uri: string) {
	const found = await find(ctx, uri)
	return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(found) }] }
}

async function find(ctx: McpContext, uri: string): Promise<unknown> {
	const { protocol, host, pathname, searchParams } = URL.parse(uri) ?? {}
	const [name = '', what, ...rest] = (pathname ?? '').slice(1).split('/')
	if (protocol === 'svc:' && rest.length === 0) {
		const runs = ctx.use('runs')
		if (host === 'runs' && what === undefined) return viewRun(await stateOf(runs, name))
		if (host === 'agents' && what === 'history') {
			const agent = await ctx.use('agents').get(name)
			const conversation = searchParams?.get('conversation') ?? undefined
			if (conversation !== undefined && !CONVERSATION_ID.test(conversation))
				throw new Fault('invalid_request', 'a conversation is 1 to 400 printable ASCII characters')
			return runs.history(agent, conversation, TURNS)
		}
	}
	const known = resourceTemplates.map((template) => template.uriTemplate).join(', ')
	throw new Fault('not_found', `there is no such resource; there are: ${known}`)
}
