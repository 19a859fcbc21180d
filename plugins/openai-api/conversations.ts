/**
 * The conversations of runs of this API. Each owner has its own names: a token, or all local callers without one. Other
 * conversations, such as those of channels, cannot be named.
 */
import { hash } from 'node:crypto'
import type { Request } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { isFault } from '../../core/errors.ts'
import { newId } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key } from '../../core/store/ports.ts'
import type { Credentials } from '../auth/contract.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import type { OpenAiSettings } from './contract.ts'

const HEADER = 'x-svc-conversation'
/** Characters that need no encoding in a path or a query. */
const PLAIN = /^[\x21-\x7e]{1,200}$/
const LOCAL = 'local'
/** The prefix of named conversations of version 0.1.0, which all callers shared. */
const SHARED = 'openai:user:'
const CLAIM = 'openai-conversation'

type ConversationDeps = Pick<Context, 'store' | 'use'>

export const headers = Joi.object({
	[HEADER]: Joi.string()
		.max(512)
		.allow('')
		.description('Names a stored conversation of this token; takes precedence over the field `user`.')
		.example('holiday-plans'),
}).unknown()

/** The owner of conversations and responses: the id of the token, or `local` for all local callers without one. */
export function ownerOf({ token_id }: Pick<Credentials, 'token_id'>): string {
	return token_id ?? LOCAL
}

/** The id of a conversation for this request alone, or for a chain of responses. */
export function newConversation(kind: 'once' | 'responses', owner: string): string {
	return `openai:${kind}:${owner}:${newId()}`
}

export interface Caller extends AgentLimit {
	/** As `ownerOf`. */
	owner: string
	/** The conversation's name from the request, as in the conversation's id. A name with other characters is hashed. */
	name: string | undefined
}

/** `user`: the field of the request. */
export function callerOf(
	{ user_is_conversation }: Pick<OpenAiSettings, 'user_is_conversation'>,
	{ auth: { credentials }, headers: sent }: Pick<Request, 'auth' | 'headers'>,
	user: string | null | undefined,
): Caller {
	const given = (sent[HEADER] as string | undefined) || (user_is_conversation && user) || undefined
	const name = given === undefined || PLAIN.test(given) ? given : hash('sha256', given)
	return { ...credentials, owner: ownerOf(credentials), name }
}

/**
 * The id of the owner's conversation of this name. A conversation that 0.1.0 stored under the name, for all callers, belongs to
 * the first owner that uses the name again, unless its token is newer than the messages.
 */
export async function namedConversation(
	ctx: ConversationDeps,
	agent: AgentRef,
	owner: string,
	name: string,
): Promise<string> {
	const own = `openai:${owner}:${name}`
	const shared = SHARED + name
	const claim = await claimOf(ctx, agent, name)
	if (claim !== undefined) return claim === owner ? shared : own
	const newest = (await ctx.use('runs').history(agent, shared, 1)).at(-1)
	if (!newest || !(await existedAt(ctx, owner, newest.timestamp))) return own
	try {
		await ctx.store.create(claimKey(agent, name), { owner })
		return shared
	} catch (error) {
		if (!isFault(error, 'conflict')) throw error
		return namedConversation(ctx, agent, owner, name) // another caller was first
	}
}

/** False for a conversation of this API that belongs to another owner. 0.1.0 stored no owner with unnamed conversations. */
export async function mayKnow(
	ctx: ConversationDeps,
	agent: AgentRef,
	owner: string,
	conversation: string,
): Promise<boolean> {
	if (!conversation.startsWith('openai:')) return true
	const name = sharedName(conversation)
	if (name !== undefined) return ((await claimOf(ctx, agent, name)) ?? owner) === owner
	// An owner may contain a colon.
	const unnamed = /^openai:(?:once|responses):(?:(.+):)?[^:]+$/.exec(conversation)
	return unnamed ? (unnamed[1] ?? owner) === owner : conversation.startsWith(`openai:${owner}:`)
}

/** The name of a conversation that 0.1.0 shared among all callers; undefined for any other. */
export function sharedName(conversation: string): string | undefined {
	return conversation.startsWith(SHARED) ? conversation.slice(SHARED.length) : undefined
}

/** Whether this owner can have existed at that time (ISO 8601). */
export async function existedAt({ use }: Pick<Context, 'use'>, owner: string, time: string): Promise<boolean> {
	if (owner === LOCAL) return true
	const token = await use('auth').tokens.get(owner)
	return token !== undefined && Date.parse(token.created_at) <= Date.parse(time)
}

/** The owner of the conversation that 0.1.0 stored under this name; undefined until it is used again. */
async function claimOf({ store }: Pick<Context, 'store'>, agent: AgentRef, name: string): Promise<string | undefined> {
	return (await store.get<{ owner: string }>(claimKey(agent, name)))?.value.owner
}

function claimKey({ uid }: AgentRef, name: string): Key {
	return [agentScope(uid), CLAIM, name]
}
