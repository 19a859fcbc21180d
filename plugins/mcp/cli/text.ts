/** MCP servers as text for people. */
import type { Style } from '../../../core/cli/contract.ts'
import type { AddedMcpServer, McpServerDetails, McpTool } from '../contract.ts'
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

/** The differences between the held and the accepted definitions of tools. */
export async function changesText(tools: readonly McpTool[], style: Style): Promise<string> {
	const { diffLines } = await import('diff')
	return tools.map(changes).join('\n\n')

	function changes({ tool, digest, accepted, ...now }: McpTool): string {
		const title = `${style.bold(style.plain(tool))}  ${style.dim(digest)}`
		const parts = diffLines(accepted === undefined ? '' : written(accepted), written(now))
		const lines = parts.flatMap(({ added, removed, value }) =>
			value
				.replace(/\n$/, '')
				.split('\n')
				.map((line) => {
					const text = style.plain(line)
					return added ? style.good(`  + ${text}`) : removed ? style.bad(`  - ${text}`) : `    ${text}`
				}),
		)
		return [title, ...lines].join('\n')
	}
}

function written({ description, input_schema, annotations }: NonNullable<McpTool['accepted']>): string {
	return `${description}\n\nArguments: ${JSON.stringify(input_schema, null, 2)}\nAnnotations: ${JSON.stringify(annotations, null, 2)}\n`
}
