/** What a model was sent, without what the gateway adds of its own to each request. */

interface Message {
	role: string
	content?: unknown
}

/** Without the message on time, place and cause of the run; of the system message the persona, if there is one. */
export function said<T extends Message>(messages: readonly T[] = []): T[] {
	return messages.flatMap((message) => {
		const { role, content } = message
		if (typeof content !== 'string' || (role !== 'system' && role !== 'user')) return [message]
		if (role === 'user') return content.startsWith('<context>') ? [] : [message]
		const persona = content.split(/(?:^|\n\n)You are the agent "/)[0]
		return persona === '' ? [] : [{ ...message, content: persona }]
	})
}
