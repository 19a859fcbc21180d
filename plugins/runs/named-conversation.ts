/** Conversations that callers of the API name themselves. Those of chats, webhooks and others cannot be named this way. */
import { hash } from 'node:crypto'

const PREFIX = 'api:'
/** Characters valid in a path or a query as they are. */
const PLAIN = /^[\x21-\x7e]{1,200}$/

/** What may be given: 1 to 200 characters, none of them a control character or a line break. Written so that JSON Schema reads it, too. */
export const CONVERSATION_NAME = /^[ -~\u00a0-\u2027\u202a-\uffff]{1,200}$/

/** The conversation's id: `api:` and the name, which may already begin with it, or a digest of a name that no address can hold as it is. */
export function namedConversation(name: string): string {
	const bare = name.startsWith(PREFIX) && name !== PREFIX ? name.slice(PREFIX.length) : name
	return PREFIX + (PLAIN.test(bare) ? bare : hash('sha256', bare))
}

export function isNamed(conversation: string): boolean {
	return conversation.startsWith(PREFIX)
}
