/** MCP servers as text for people. */
import type { Style } from '../../../core/cli/contract.ts'
import type { AddedMcpServer, McpServerDetails } from '../contract.ts'
import { when } from '../../../core/cli/when.ts'

/** Number of shown lines of a server's standard error. */
const STDERR_LINES = 20

/** One sentence about the connection, and the id. */
export function state({ name, status, status_detail, id }: AddedMcpServer, style: Style): string {
	const colour = { connected: style.good, error: style.bad }[status as string] ?? style.warn
	const text = `${style.bold(name)}: ${colour(status)}`
	return [status_detail === undefined ? text : `${text}; ${style.plain(status_detail)}`, `  id: ${id}`].join('\n')
}

/** A server's details without its tools, with the end of its standard error. */
export function details(one: McpServerDetails, style: Style): string {
	const { server, last_error, stderr, tools } = one
	const tail = stderr.trimEnd().split('\n').slice(-STDERR_LINES)
	const fields = style.fields([
		['transport', one.transport],
		[one.url ? 'address' : 'runs', one.url ?? [one.command, ...(one.args ?? [])].join(' ')],
		['environment', Object.keys(one.env ?? {})],
		['headers', Object.keys(one.headers ?? {})],
		['signed in', one.login && [one.login.issuer, ...one.login.scopes].map((text) => style.plain(text))],
		['sampling', one.sampling ? 'allowed' : null],
		['roots', one.roots],
		['server', server && style.plain(`${server.name} ${server.version}`)],
		['revision', one.protocol_version && style.plain(one.protocol_version)],
		['connected', when(one.connected_at)],
		['process', one.pid],
		['tools', `${tools.length}, of which ${tools.filter((tool) => tool.held).length} are held back`],
		['last error', last_error && `${when(last_error.at)} ${style.plain(last_error.message)}`],
	])
	const stderrLines =
		stderr === '' ? [] : [style.bold('Standard error'), ...tail.map((line) => `  ${style.plain(line)}`)]
	return [state(one, style), fields, ...stderrLines].join('\n')
}
