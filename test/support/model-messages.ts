/** The messages sent to a model, without the gateway's additions. */

interface Message {
	role: string
	content?: unknown
}

/** A user's text without the `<context>` block of the run. */
export function withoutContext(content: string): string {
	return content.replace(/^<context>\n[\s\S]*?\n<\/context>\n*/, '')
}

/** Removes the `<context>` blocks, and reduces the system message to the persona, if there is one. */
export function withoutAdditions<T extends Message>(messages: readonly T[] = []): T[] {
	return messages.flatMap((message) => {
		const { role, content } = message
		if (typeof content !== 'string' || (role !== 'system' && role !== 'user')) return [message]
		if (role === 'user') {
			const own = withoutContext(content)
			return own === '' ? [] : [{ ...message, content: own }]
		}
		const persona = content.split(/(?:^|\n\n)You are the agent "/)[0]
		return persona === '' ? [] : [{ ...message, content: persona }]
	})
}
