/** Conversations named by API callers. The prefix keeps them apart from those of chats, webhooks and others. */
import { hash } from 'node:crypto'

const PREFIX = 'api:'
/** Printable ASCII without spaces. */
const PLAIN = /^[\x21-\x7e]{1,200}$/

/** A valid name: 1 to 200 characters without control characters and line breaks. Written in the syntax that JSON Schema supports. */
export const CONVERSATION_NAME = /^[ -~\u00a0-\u2027\u202a-\uffff]{1,200}$/

/**
 * The conversation's id: `api:` and the name, or the name's digest if it has spaces or characters outside of ASCII, which a URL cannot
 * contain. A name may already have the prefix.
 */
export function namedConversation(name: string): string {
	const bare = name.startsWith(PREFIX) && name !== PREFIX ? name.slice(PREFIX.length) : name
	return PREFIX + (PLAIN.test(bare) ? bare : hash('sha256', bare))
}

export function isNamed(conversation: string): boolean {
	return conversation.startsWith(PREFIX)
}
