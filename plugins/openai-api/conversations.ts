/** The conversations in which runs of this surface go. Conversations of channels and others cannot be named from here. */
import { createHash } from 'node:crypto'
import type { Request } from '@hapi/hapi'
import Joi from 'joi'
import { newId } from '../../core/ids.ts'
import type { OpenAiSettings } from './contract.ts'

const HEADER = 'x-svc-conversation'
/** Fit for a path or a query as they are. */
const PLAIN = /^[\x21-\x7e]{1,200}$/

export const headers = Joi.object({
	[HEADER]: Joi.string()
		.max(512)
		.allow('')
		.description('Names a conversation that the gateway keeps; before the field `user`.')
		.example('holiday-plans'),
}).unknown()

/** Of this request alone, or of responses that go on from each other. */
export function newConversation(kind: 'once' | 'responses'): string {
	return `openai:${kind}:${newId()}`
}

/** The one that the request names, where it does. */
export function namedConversation(
	{ user_is_conversation }: Pick<OpenAiSettings, 'user_is_conversation'>,
	request: Pick<Request, 'headers'>,
	user: string | null | undefined,
): string | undefined {
	const name = (request.headers[HEADER] as string | undefined) || (user_is_conversation && user) || undefined
	if (name === undefined) return undefined
	return `openai:user:${PLAIN.test(name) ? name : createHash('sha256').update(name).digest('hex')}`
}
