/** What a chat may tell the gateway itself. Everything else goes to the agent, also with a `/` before it. */
export type Command = 'start' | 'new' | 'stop' | 'whoami'

/** A command alone; only `/start` may have something behind it, which is how links to a bot begin. */
export function commandIn(text: string): Command | undefined {
	const found = /^\/(start|new|stop|whoami)(?:@\w{1,64})?(?:\s+(\S[^]*))?$/i.exec(text.trim())
	const name = found?.[1]?.toLowerCase() as Command | undefined
	return found?.[2] === undefined || name === 'start' ? name : undefined
}
