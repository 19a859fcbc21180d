/** The commands of a chat to the gateway itself. Everything else goes to the agent, even with a leading `/`. */
const NAMES = ['start', 'new', 'stop', 'whoami', 'help', 'model', 'usage', 'context', 'compact'] as const

export interface Command {
	name: (typeof NAMES)[number]
	/** What follows the name; only `/start`, since links to a bot add something, and `/model` take it. */
	argument?: string
}

const PATTERN = new RegExp(`^/(${NAMES.join('|')})(?:@\\w{1,64})?(?:\\s+(\\S[^]*))?$`, 'i')

/** A command alone in a message. */
export function commandIn(text: string): Command | undefined {
	const [, found, argument] = PATTERN.exec(text.trim()) ?? []
	const name = NAMES.find((one) => one === found?.toLowerCase())
	if (!name) return undefined
	if (argument === undefined) return { name }
	return name === 'start' || name === 'model' ? { name, argument } : undefined
}
