/** The names by which agents call the tools of servers. */
import { hash } from 'node:crypto'
import { wireName } from '../../sandbox/wire-name.ts'

const LIMIT = 128
const HASH = 8

/** `mcp__<server>__<tool>`; a name that is too long is cut and ends in a hash. */
export function toolName(server: string, tool: string): string {
	const whole = `mcp__${server}__${tool}`
	return whole.length <= LIMIT ? whole : withHash(whole, server, tool)
}

/**
 * The names of many tools. They stay distinct in an API with a smaller alphabet. Of two tools with the same name, the second
 * one gets a hash.
 */
export function toolNames(tools: readonly { server: string; tool: string }[]): string[] {
	const taken = new Set<string>()
	return tools.map(({ server, tool }) => {
		const plain = toolName(server, tool)
		const name = taken.has(wireName(plain)) ? withHash(plain, server, tool) : plain
		taken.add(wireName(name))
		return name
	})
}

function withHash(name: string, server: string, tool: string): string {
	const end = hash('sha256', JSON.stringify([server, tool])).slice(0, HASH)
	// Short enough that an API with shorter names does not cut off the hash.
	return `${name.slice(0, 64 - 1 - HASH)}_${end}`
}
