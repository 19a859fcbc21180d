/** What a model was sent, without what the gateway adds of its own to each request. */

interface Message {
	role: string
	content?: unknown
}

/** What a user said, without the time, place and cause of the run. */
export function ownWords(content: string): string {
	return content.replace(/^<context>\n[\s\S]*?\n<\/context>\n*/, '')
}

/** Without the time, place and cause of the run; of the system message the persona, if there is one. */
export function said<T extends Message>(messages: readonly T[] = []): T[] {
	return messages.flatMap((message) => {
		const { role, content } = message
		if (typeof content !== 'string' || (role !== 'system' && role !== 'user')) return [message]
		if (role === 'user') {
			const own = ownWords(content)
			return own === '' ? [] : [{ ...message, content: own }]
		}
		const persona = content.split(/(?:^|\n\n)You are the agent "/)[0]
		return persona === '' ? [] : [{ ...message, content: persona }]
	})
}
