/** Hints in API errors name a request, for every client. Here the command that does the same replaces it. */
import type { WireHint } from '../errors.ts'
import { jsonIn } from '../util/json-in.ts'
import { builtInFiles } from './command-table.ts'

/** Replaces the request in the message by a command, if a plugin declares one for it. `header`: the hint as JSON. */
export async function withCommand(message: string, header: string | null): Promise<string> {
	const hint = parsed(header)
	if (!hint) return message
	const command = await commandFor(hint)
	const at = message.lastIndexOf(hint.request)
	if (command === undefined || at < 0) return message
	return `${message.slice(0, at)}"${command}"${message.slice(at + hint.request.length)}`
}

function parsed(header: string | null): WireHint | undefined {
	// The server may not be a gateway, or a proxy may have changed the header.
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

/** Whether it can be pasted into a command as one word that is not an option. */
function isWord(value: unknown): value is string {
	return typeof value === 'string' && /^\w[\w.-]*$/.test(value)
}
