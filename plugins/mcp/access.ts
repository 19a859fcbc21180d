/** Who may add what: a program on this machine, and an address in its network, take more than the right to change an agent. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Reach } from '../../core/guarded-fetch.ts'
import type { McpSettings } from './contract.ts'

const LOOKUP_LIMIT_MS = 5_000

type Command = { command: string; args: readonly string[]; variables: readonly string[] }

/** Throws `forbidden`, naming the setting, unless the operator listed this command line with these variables. */
export function checkCommand(wanted: Command, { allowed_commands }: Pick<McpSettings, 'allowed_commands'>): void {
	const line = JSON.stringify([wanted.command, ...wanted.args])
	const listed = allowed_commands.map(parseEntry).filter((entry) => entry.line === line)
	if (listed.length === 0) {
		throw new Fault(
			'forbidden',
			'starting a program needs the scope "*", or this exact command line in mcp.allowed_commands of gateway.yaml',
		)
	}
	if (listed.some((entry) => wanted.variables.every((name) => entry.variables.has(name)))) return
	throw new Fault(
		'forbidden',
		`setting env for this command needs the scope "*", or NAME= for each variable before the command in mcp.allowed_commands of gateway.yaml`,
	)
}

/** What a server's connections may reach. */
export function reachOf(trusted: boolean, { allowed_hosts }: Pick<McpSettings, 'allowed_hosts'>): Reach {
	return {
		protocols: ['http:', 'https:'],
		private_first: trusted,
		private_hosts: allowed_hosts,
		hint: 'that needs the scope "*", or the host in mcp.allowed_hosts of gateway.yaml',
	}
}

/**
 * Throws `address_refused` for an address that nobody may name, and `forbidden` for one that takes more than this caller
 * has. For people, since each connection is checked again; a name that does not resolve now is let through.
 */
export async function checkAddress(url: string, trusted: boolean, settings: McpSettings): Promise<void> {
	const { checkReach } = await import('../../core/guarded-fetch.ts') // heavy, and not needed by who has no server
	await checkReach(url, { reach: reachOf(true, settings), timeout_ms: LOOKUP_LIMIT_MS })
	if (trusted) return
	try {
		await checkReach(url, { reach: reachOf(false, settings), timeout_ms: LOOKUP_LIMIT_MS })
	} catch (error) {
		if (!isFault(error, 'address_refused')) throw error
		throw new Fault('forbidden', error.message, { cause: error })
	}
}

/** `['GITHUB_TOKEN=', 'npx', '-y', 'server']` → the line without its variables, and their names. */
function parseEntry(entry: readonly string[]): { line: string; variables: ReadonlySet<string> } {
	const start = entry.findIndex((item) => !/^[A-Za-z_][A-Za-z0-9_]*=$/.test(item))
	const at = start === -1 ? entry.length : start
	return {
		line: JSON.stringify(entry.slice(at)),
		variables: new Set(entry.slice(0, at).map((item) => item.slice(0, -1))),
	}
}
