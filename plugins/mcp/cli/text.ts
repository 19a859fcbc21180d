/** MCP servers as text for people. */
import type { Style } from '../../../core/cli/contract.ts'
import type { ChangedTool } from './changes.ts'
import { when } from '../../../core/cli/when.ts'

export interface Server {
	id: string
	name: string
	transport: 'stdio' | 'sse' | 'http'
	status: 'connecting' | 'connected' | 'reconnecting' | 'needs_login' | 'error' | 'disabled'
	status_detail?: string
}

export interface Details extends Server {
	command?: string
	args?: string[]
	url?: string
	env?: Record<string, unknown>
	headers?: Record<string, unknown>
	login?: {
		issuer: string
		scopes: string[]
		expires_at: string | null
		signed_in_at: string | null
		renewable: boolean
	} | null
	sampling: boolean
	roots: string[]
	status_detail: string
	last_error: { at: string; message: string } | null
	server: { name: string; version: string } | null
	connected_at: string | null
	pid: number | null
	stderr: string
	tools: ChangedTool[]
	not_offered: string[]
}

/** Lines of a server's standard error that are shown. */
const STDERR_LINES = 20

/** One sentence on the connection, and the id. */
export function state({ name, status, status_detail, id }: Server, style: Style): string {
	const colour = { connected: style.good, error: style.bad }[status as string] ?? style.warn
	const text = `${style.bold(name)}: ${colour(status)}`
	return [status_detail === undefined ? text : `${text}; ${style.plain(status_detail)}`, `  id: ${id}`].join('\n')
}

/** A server without its tools, with the end of its standard error. */
export function details(one: Details, style: Style): string {
	const { server, last_error, stderr, tools } = one
	const tail = stderr.trimEnd().split('\n').slice(-STDERR_LINES)
	const fields = style.fields([
		['transport', one.transport],
		['runs', one.url ?? [one.command, ...(one.args ?? [])].join(' ')],
		['environment', Object.keys(one.env ?? {})],
		['headers', Object.keys(one.headers ?? {})],
		['signed in', one.login && [one.login.issuer, ...one.login.scopes].map((text) => style.plain(text))],
		['sampling', one.sampling ? 'allowed' : null],
		['roots', one.roots],
		['server', server && style.plain(`${server.name} ${server.version}`)],
		['connected', when(one.connected_at)],
		['process', one.pid],
		['tools', `${tools.length}, of which ${tools.filter((tool) => tool.held).length} are held back`],
		['last error', last_error && `${when(last_error.at)} ${style.plain(last_error.message)}`],
	])
	const stderrLines =
		stderr === '' ? [] : [style.bold('Standard error'), ...tail.map((line) => `  ${style.plain(line)}`)]
	return [state(one, style), fields, ...stderrLines].join('\n')
}
