import { mustBeGateway, notAGateway, send } from '../connection.ts'
import { CliError } from '../contract.ts'
import type { Command } from '../command.ts'
import { fileOf, isToken, storeToken } from '../logins.ts'
import { secretInput } from '../secret-input.ts'

export default {
	description:
		'Store a token for the address of the gateway. Every command uses it for that address, unless SVC_TOKEN is set. The token is read from a hidden prompt or standard input, and tested before it is stored',
	examples: `
Examples:
  svc login
  SVC_URL=https://gateway.example.com svc login < token.txt
  svc logout`,
	takesSecret: true,
	async run(cli) {
		const { api, env, home } = cli
		const { url } = api
		const token = (await secretInput(cli, `Token for ${url}`)).trim()
		if (!isToken(token)) throw new CliError('usage', 'this is not a token; it is one word, such as svc_…')
		// The token is sent only to a gateway.
		await mustBeGateway(url)
		const connection = { url: () => url, headers: () => ({ authorization: `Bearer ${token}` }) }
		const response = await send(connection, '/v1/agents', { method: 'GET', signal: cli.signal }, { accept: 403 })
		if (!response.ok && !(await isForbidden(response))) throw notAGateway(url)
		storeToken(home, url, token)
		cli.out.answer(
			{ url, file: fileOf(home) },
			(_, style) => `${style.good('logged in')} at ${url}; the token is in ${fileOf(home)}`,
		)
		if (isPlainHttp(url))
			cli.out.note(
				cli.out.style.warn('Over http:// others on the network can read the token; use https:// for another machine.'),
			)
		if (env.SVC_TOKEN) cli.out.note(cli.out.style.warn('SVC_TOKEN is set and takes precedence over the stored token.'))
	},
} satisfies Command

/** The token is valid, but lacks the scope for this route. */
async function isForbidden(response: Response): Promise<boolean> {
	const body = (await response.json().catch(() => null)) as { code?: unknown } | null
	return body?.code === 'forbidden'
}

function isPlainHttp(url: string): boolean {
	const { protocol, hostname } = new URL(url)
	return protocol === 'http:' && hostname !== 'localhost' && hostname !== '[::1]' && !hostname.startsWith('127.')
}
