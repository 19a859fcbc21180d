import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import { defined } from '../../../core/util/defined.ts'
import { CliError } from '../../../core/cli/contract.ts'
import { refuseSecret } from '../../../core/cli/secret-input.ts'

export interface AddOptions {
	url?: string
	transport?: string
	env?: string[]
	header?: string[]
	sampling?: boolean
	root?: string[]
	login?: boolean
	clientId?: string
	clientSecret?: string
	privateKey?: string
	grant?: string
	scope?: string[]
	wait?: boolean
}

/**
 * The request body that adds a server: a program after `--`, or an address. Throws a `CliError` if both or none are given, and if
 * a value looks like a secret.
 */
export function mcpRequest(name: string, command: readonly string[], options: AddOptions): Record<string, unknown> {
	const { url, transport, env, header, sampling, root } = options
	const allowances = { sampling, roots: root?.map(addressOf) }
	const [program, ...args] = command
	if ((program === undefined) === (url === undefined))
		throw new CliError('usage', 'give either a program after --, or --url: svc mcp add AGENT NAME -- npx -y SERVER')
	if (url === undefined) {
		if (header) throw new CliError('usage', '--header needs --url; for a program use --env')
		if (authOf(options)) throw new CliError('usage', 'options for a login need --url')
		const variables = env && pairs('--env', env, '=')
		return { name, transport: 'stdio', command: program, args, env: variables, ...allowances }
	}
	if (env) throw new CliError('usage', '--env needs a program; for an address use --header')
	const headers = header && pairs('--header', header, ':')
	return { name, transport: transport ?? 'sse', url, headers, auth: authOf(options), ...allowances }
}

/** Arguments that look like relative paths. They would not work, since the program does not start in the caller's folder. */
export function relativePaths(command: readonly string[]): string[] {
	return command.slice(1).filter((argument) => /^\.{1,2}(?:[/\\]|$)/.test(argument))
}

/** Undefined if no option concerns the login. */
function authOf(options: AddOptions): Record<string, unknown> | undefined {
	const { login = true, clientId, clientSecret, privateKey, grant, scope, wait } = options
	const [client_secret, private_key] = [clientSecret, privateKey].map((secret) => secret && { secret })
	const about = defined({ grant, client_id: clientId, client_secret, private_key, scopes: scope, wait })
	const isNamed = Object.keys(about).length > 0
	if (!login && isNamed) throw new CliError('usage', '--no-login cannot be combined with other options for a login')
	if (!login) return { type: 'none' }
	return isNamed ? { type: 'oauth', ...about } : undefined
}

/** The `file://` address of a folder, given as an absolute path or as that address. */
function addressOf(folder: string): string {
	if (/^file:\/\//i.test(folder)) return folder
	if (isAbsolute(folder)) return pathToFileURL(folder).href
	throw new CliError('usage', `--root needs an absolute path, such as /srv/books; ${folder} is relative`)
}

/** A value that is exactly one handle is sent as a reference, so that the server's details show the name of the secret. */
function pairs(option: string, texts: string[], separator: string): Record<string, string | { secret: string }> {
	return Object.fromEntries(
		texts.map((text) => {
			const at = text.indexOf(separator)
			if (at < 1) throw new CliError('usage', `${option} must have the form name${separator}value`)
			const name = text.slice(0, at).trim()
			const value = separator === ':' ? text.slice(at + 1).trim() : text.slice(at + 1)
			refuseSecret(option, name, value)
			const [, secret] = /^\{\{secret:([A-Za-z0-9_.-]+)\}\}$/.exec(value) ?? []
			return [name, secret === undefined ? value : { secret }]
		}),
	)
}
