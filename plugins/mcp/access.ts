/**
 * Which callers may add which servers. The permission to change an agent is not sufficient to start programs on this machine or
 * to reach addresses in its network.
 */
import { Fault, isFault } from '../../core/errors.ts'
import type { FetchPolicy } from '../../core/fetch/guarded-fetch.ts'
import type { View } from '../../core/redactor/view.ts'
import { invalidField } from '../shared/invalid-field.ts'
import type { McpSettings, NewMcpServer } from './contract.ts'

const LOOKUP_LIMIT_MS = 5_000

type ServerCommand = { command: string; args: readonly string[]; variables: readonly string[] }

/** Throws `forbidden`, naming the setting, unless the operator listed this command line with these variables. */
export function checkCommand(wanted: ServerCommand, { allowed_commands }: Pick<McpSettings, 'allowed_commands'>): void {
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
		'setting env for this command needs the scope "*", or NAME= for each variable before the command in mcp.allowed_commands of gateway.yaml',
	)
}

/**
 * Throws `forbidden`, naming the scope, if the request refers to secrets: a caller who chooses both a server and a secret for it
 * can read the secret there. `named`: returns the names in the handles of plain data.
 */
export function checkReferences({ env, headers, url, auth }: NewMcpServer, named: (data: unknown) => string[]): void {
	const { client_secret, private_key } = auth ?? {}
	const places = {
		url,
		...prefixed('env', env),
		...prefixed('headers', headers),
		...prefixed('auth', { client_secret, private_key }),
	}
	for (const [place, value] of Object.entries(places)) {
		if (typeof value !== 'object' && named(value).length === 0) continue
		throw new Fault('forbidden', `${place} refers to a secret, which requires the scope vault:write or *`)
	}
}

/**
 * Throws `invalid_request`, naming the field, if a field that is stored unencrypted contains the value of a secret that the agent
 * has read. The store redacts records, so after a restart the server would get the placeholder instead of the value. `view`: the
 * agent's.
 */
export function checkPlain({ command, args, url, roots }: NewMcpServer, view: View): void {
	const quiet = view.reportingTo(() => {})
	for (const [field, value] of Object.entries({ command, args, url, roots })) {
		if (quiet.data(value, 'record') === value) continue
		const instead =
			field === 'url' ? 'write {{secret:NAME}} instead' : 'pass it to the program in env, as {{secret:NAME}}'
		throw invalidField(field, `${field} contains the value of a secret, and is stored unencrypted; ${instead}`)
	}
}

/** Throws `forbidden`, naming the scope, for what only an operator may allow a server: the agent's model, and folders. */
export function checkAllowances({ sampling = false, roots = [] }: NewMcpServer): void {
	const field = sampling ? 'sampling' : 'roots'
	if (sampling || roots.length > 0) throw new Fault('forbidden', `${field} requires the scope "*"`)
}

function prefixed(field: string, values: object = {}): Record<string, unknown> {
	return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${field}.${name}`, value]))
}

/** The addresses that a server's connections may reach. */
export function policyOf(trusted: boolean, { allowed_hosts }: Pick<McpSettings, 'allowed_hosts'>): FetchPolicy {
	return {
		protocols: ['http:', 'https:'],
		private_first: trusted,
		private_hosts: allowed_hosts,
		hint: 'that needs the scope "*", or the host in mcp.allowed_hosts of gateway.yaml',
	}
}

/**
 * Throws `address_refused` for an address that no caller may use, and `forbidden` for one that this caller may not use. This
 * check only makes the error appear early: each connection is checked again. A host name that does not resolve now is accepted.
 */
export async function checkAddress(url: string, trusted: boolean, settings: McpSettings): Promise<void> {
	const { checkAddress } = await import('../../core/fetch/guarded-fetch.ts') // large, and not needed without a server
	await checkAddress(url, { policy: policyOf(true, settings), timeout_ms: LOOKUP_LIMIT_MS })
	if (trusted) return
	try {
		await checkAddress(url, { policy: policyOf(false, settings), timeout_ms: LOOKUP_LIMIT_MS })
	} catch (error) {
		if (!isFault(error, 'address_refused')) throw error
		throw new Fault('forbidden', error.message, { cause: error })
	}
}

/** `['GITHUB_TOKEN=', 'npx', '-y', 'server']` → the command line, and the names of its variables. */
function parseEntry(entry: readonly string[]): { line: string; variables: ReadonlySet<string> } {
	const start = entry.findIndex((item) => !/^[A-Za-z_][A-Za-z0-9_]*=$/.test(item))
	const at = start === -1 ? entry.length : start
	return {
		line: JSON.stringify(entry.slice(at)),
		variables: new Set(entry.slice(0, at).map((item) => item.slice(0, -1))),
	}
}
