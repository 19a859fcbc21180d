/** The commands of a chat to the gateway itself. Everything else goes to the agent, even with a leading `/`. */
export type Command = 'start' | 'new' | 'stop' | 'whoami'

/** A command alone; only `/start` may have an argument, since links to a bot add one. */
export function commandIn(text: string): Command | undefined {
	const found = /^\/(start|new|stop|whoami)(?:@\w{1,64})?(?:\s+(\S[^]*))?$/i.exec(text.trim())
	const name = found?.[1]?.toLowerCase() as Command | undefined
	return found?.[2] === undefined || name === 'start' ? name : undefined
}
