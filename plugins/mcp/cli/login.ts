/** `svc mcp login`: a person signs in with a browser, which may be on another machine. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { McpServer, McpServerDetails } from '../contract.ts'

const POLL_MS = 500

/** Starts a login. Returns the server when the login is complete, by the browser or by a pasted address. */
export async function signIn(cli: Cli, agent: string, { id, name }: McpServer): Promise<McpServer> {
	const server = path`/v1/agents/${agent}/mcp/${id}`
	const { url, expires_at } = await cli.api.request<{ url: string; expires_at: string }>('POST', `${server}/login`)
	const before = (await cli.api.request<McpServerDetails>('GET', server)).login?.signed_in_at ?? null
	cli.out.note(`Open this address in a browser, and sign in to ${name}:\n\n${cli.out.style.plain(url)}\n`)
	const ended = new AbortController()
	const until = AbortSignal.any([cli.signal, ended.signal])
	try {
		const completions = [awaitLogin(cli, server, { before, expires_at, until })]
		if (cli.ask.canAsk) completions.push(pasted(cli, server, until))
		return await Promise.race(completions)
	} finally {
		ended.abort()
	}
}

/** Polls the server until the browser has completed the login at the gateway. */
async function awaitLogin(
	cli: Cli,
	server: string,
	{ before, expires_at, until }: { before: string | null; expires_at: string; until: AbortSignal },
): Promise<McpServer> {
	while (Date.now() < Date.parse(expires_at)) {
		await sleep(POLL_MS, undefined, { signal: until })
		const now = await cli.api.request<McpServerDetails>('GET', server)
		const isNew = (now.login?.signed_in_at ?? null) !== before
		if (isNew && now.status !== 'needs_login' && now.status !== 'connecting') return now
	}
	throw new CliError('failed', 'nobody signed in within 10 minutes; run the command again')
}

async function pasted(cli: Cli, server: string, signal: AbortSignal): Promise<McpServer> {
	const redirect_url = await cli.ask.text(
		'If the browser cannot reach the gateway: paste the address that it was sent to',
		{ signal, validate: (text) => (URL.canParse(text.trim()) ? undefined : 'paste the complete address') },
	)
	return cli.api.request<McpServer>('POST', `${server}/login/complete`, { redirect_url: redirect_url.trim() })
}
