/** Errors of the API name requests, for every client; people at a terminal have commands. */
import type { WireHint } from '../errors.ts'
import { jsonIn } from '../util/json-in.ts'
import { builtInFiles } from './command-table.ts'

/** The message with a command in place of the request that its hint names, where a plugin declares one. `header`: the hint as JSON. */
export async function withCommand(message: string, header: string | null): Promise<string> {
	const hint = parsed(header)
	if (!hint) return message
	const command = await commandFor(hint)
	const at = message.lastIndexOf(hint.request)
	if (command === undefined || at < 0) return message
	return `${message.slice(0, at)}"${command}"${message.slice(at + hint.request.length)}`
}

function parsed(header: string | null): WireHint | undefined {
	// What answers may be no gateway of ours, or a proxy changed it.
	const hint = jsonIn(header ?? '') as Partial<WireHint> | null | undefined
	return typeof hint?.route === 'string' && typeof hint.request === 'string' ? (hint as WireHint) : undefined
}

async function commandFor({ route, params }: WireHint): Promise<string | undefined> {
	const known = await builtInFiles()
	const command = known.find(({ hints = {} }) => Object.hasOwn(hints, route))?.hints?.[route]
	return command?.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
		const value = Object.hasOwn(params ?? {}, name) ? params?.[name] : undefined
		return isWord(value) ? value : name.toUpperCase()
	})
}

/** Whether it can be pasted as one word of a command that is no option. */
function isWord(value: unknown): value is string {
	return typeof value === 'string' && /^\w[\w.-]*$/.test(value)
}
