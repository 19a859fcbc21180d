/** Chat commands that the gateway handles. All other text goes to the agent, even with a leading `/`. */
const NAMES = ['start', 'new', 'stop', 'whoami', 'help', 'model', 'usage', 'context', 'compact'] as const

export interface Command {
	name: (typeof NAMES)[number]
	/** The text after the name. Only `/model` and `/start` accept it; links to a bot add one to `/start`. */
	argument?: string
}

const PATTERN = new RegExp(`^/(${NAMES.join('|')})(?:@\\w{1,64})?(?:\\s+(\\S[^]*))?$`, 'i')

/** The command of a message that consists only of a command. */
export function commandIn(text: string): Command | undefined {
	const [, found, argument] = PATTERN.exec(text.trim()) ?? []
	const name = NAMES.find((one) => one === found?.toLowerCase())
	if (!name) return undefined
	if (argument === undefined) return { name }
	return name === 'start' || name === 'model' ? { name, argument } : undefined
}
