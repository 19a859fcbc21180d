import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { answerList, answerTable } from '../../../core/cli/lists.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import { signIn } from './login.ts'
import { mcpRequest, relativePaths } from './request.ts'
import type { AddOptions } from './request.ts'
import { changesText, details, state } from './text.ts'
import type { McpServer, McpServerDetails } from '../contract.ts'
import { pick } from '../../../core/cli/pick.ts'

interface Named {
	agent: string
	/** The name or id of the server. */
	server: string
}

export default {
	examples: `
Examples:
  svc mcp add ada files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  svc mcp add ada tracker --url https://example.com/mcp --header 'Authorization: Bearer {{secret:TRACKER}}'
  svc mcp add ada issues --url https://mcp.example.com/mcp
  svc mcp login ada issues                 prints an address for a browser, and waits
  svc mcp tools ada files
  svc mcp accept ada files                 after a server changed the definition of a tool`,
	commands: {
		list: {
			description: 'List the MCP servers of an agent or of all agents',
			arguments: '[agent]',
			run: (cli, { agent }: { agent?: string }) =>
				answerList(cli, agent, {
					of: (name) => listed(cli, name),
					empty: () => `No MCP servers yet; svc mcp --help shows how to add one.`,
					row: (one) => ({ server: one.name, transport: one.transport, status: one.status, id: one.id }),
				}),
		},
		show: {
			description: 'Show the state of a server, and its latest standard error output',
			arguments: '<agent> <server>',
			async run(cli, { agent, server: wanted }: Named) {
				cli.out.answer(await detailsOf(cli, agent, wanted), details)
			},
		},
		tools: {
			description: 'List the tools that a server offers, or the reason why it is not connected',
			arguments: '<agent> <server>',
			async run(cli, { agent, server: wanted }: Named) {
				const { tools, not_offered, name, status, status_detail } = await detailsOf(cli, agent, wanted)
				const title = cli.out.style.bold(name)
				const empty = status === 'connected' ? `${title} offers no tools.` : `The tools of ${title} are not known yet.`
				answerTable(cli, tools, empty, (one) => ({
					tool: one.tool,
					state: one.held ? 'held back' : 'offered',
					description: one.description,
				}))
				if (status !== 'connected') cli.out.note(`${name} is not connected (${status}): ${status_detail}`)
				for (const why of not_offered) cli.out.note(`Not offered: ${why}`)
				if (tools.some((one) => one.held)) cli.out.note(`To see what changed: svc mcp accept ${agent} ${name}`)
			},
		},
		add: {
			description: 'Give an agent a server: a program with its arguments after --, or an address',
			arguments: '<agent> <name> [command...]',
			options: {
				'--url <address>': 'of a server over Streamable HTTP or the older SSE',
				'--transport <name>': { about: 'with --url: sse tries both, the default', choices: ['sse', 'http'] },
				'--env <name=value...>': 'an environment variable of the program; {{secret:NAME}} is replaced by a secret',
				'--header <name: value...>': 'a header for the address; {{secret:NAME}} is replaced by a secret',
				'--sampling': "lets the server send its own requests to the agent's model",
				'--root <folder...>': 'a folder in which the server should work',
				'--no-login': 'never sign in, even if the server requires it',
				'--client-id <id>': 'sign in as this client, which was registered with the authorization server',
				'--client-secret <secret>': 'with --client-id: the secret of the vault that holds its secret',
				'--private-key <secret>': 'with --client-id: the secret of the vault that holds its key (PEM)',
				'--grant <grant>': {
					about: 'client_credentials: the gateway signs in itself, without a person',
					choices: ['authorization_code', 'client_credentials'],
				},
				'--scope <scope...>':
					'scopes to request if the server does not specify any; separate several with spaces or commas',
				'--wait': 'a call of a tool pauses its run until somebody has signed in',
			},
			async run(
				cli,
				{ agent, name, command, ...options }: { agent: string; name: string; command: string[] } & AddOptions,
			) {
				const body = mcpRequest(name, command, options)
				using progress = cli.out.progress(`Connecting ${name}`)
				const added = await cli.api.request<McpServer>('POST', path`/v1/agents/${agent}/mcp`, body)
				progress.done()
				cli.out.answer(added, (one, style) => state(one, style))
				const relative = relativePaths(command)
				if (relative.length > 0)
					cli.out.note(`The program starts in an empty folder, so give absolute paths: ${relative.join(', ')}`)
				if (added.status === 'needs_login') return cli.out.note(`To sign in: svc mcp login ${agent} ${name}`)
				if (added.status !== 'connected' && added.status !== 'connecting')
					throw new CliError('failed', `${name} was added, but is not connected: svc mcp show ${agent} ${name}`)
			},
		},
		login: {
			description: 'Sign in to a server, in a browser of any machine',
			arguments: '<agent> <server>',
			async run(cli, { agent, server: wanted }: Named) {
				const server = await find(cli, agent, wanted)
				const signedIn = await signIn(cli, agent, server)
				cli.out.answer(signedIn, state)
				if (signedIn.status !== 'connected' && signedIn.status !== 'connecting')
					throw new CliError('failed', `${server.name} is not connected: svc mcp show ${agent} ${server.name}`)
			},
		},
		logout: {
			description: 'Sign out of a server; its tokens are revoked and deleted',
			arguments: '<agent> <server>',
			async run(cli, { agent, server: wanted }: Named) {
				const { id } = await find(cli, agent, wanted)
				const left = await cli.api.request<McpServer>('POST', path`/v1/agents/${agent}/mcp/${id}/logout`)
				cli.out.answer(left, state)
			},
		},
		accept: {
			description: 'Show which tools have changed, and accept them after a confirmation',
			arguments: '<agent> <server>',
			options: { '--digest <sha256...>': 'accept these definitions without asking', ...yesOption },
			async run(cli, { agent, server: wanted, ...options }: Named & { digest?: string[]; yes?: boolean }) {
				const before = await detailsOf(cli, agent, wanted)
				const digests = options.digest ?? (await consented(cli, before, agent, options))
				if (digests.length === 0)
					return cli.out.answer(before, ({ name }) => `${name} has no tools that are held back.`)
				const where = path`/v1/agents/${agent}/mcp/${before.id}/accept`
				const after = await cli.api.request<McpServerDetails>('POST', where, { digests })
				cli.out.answer(after, ({ name }) => `Accepted ${pluralize(digests.length, 'definition')} of ${name}.`)
			},
		},
		enable: {
			description: 'Switch a server on',
			arguments: '<agent> <server>',
			run: (cli, named: Named) => switchTo(cli, true, named),
		},
		disable: {
			description: 'Switch a server off; its process or session ends',
			arguments: '<agent> <server>',
			run: (cli, named: Named) => switchTo(cli, false, named),
		},
		restart: {
			description: 'Reconnect a server; calls in progress end',
			arguments: '<agent> <server>',
			async run(cli, { agent, server: wanted }: Named) {
				const { id, name } = await find(cli, agent, wanted)
				using progress = cli.out.progress(`Connecting ${name}`)
				const restarted = await cli.api.request<McpServer>('POST', path`/v1/agents/${agent}/mcp/${id}/restart`)
				progress.done()
				cli.out.answer(restarted, state)
			},
		},
		remove: {
			description: 'Remove a server from an agent; its process or session ends',
			arguments: '<agent> <server>',
			options: yesOption,
			async run(cli, { agent, server: wanted, ...options }: Named & { yes?: boolean }) {
				const { id, name } = await find(cli, agent, wanted)
				await consent(cli, options, `Remove the MCP server ${name} from ${agent}?`)
				await cli.api.request('DELETE', path`/v1/agents/${agent}/mcp/${id}`)
				cli.out.answer({ id, status: 'deleted' }, () => `Removed ${name}.`)
			},
		},
	},
} satisfies Command

async function switchTo(cli: Cli, enabled: boolean, { agent, server: wanted }: Named): Promise<void> {
	const { id } = await find(cli, agent, wanted)
	const changed = await cli.api.request<McpServer>('PATCH', path`/v1/agents/${agent}/mcp/${id}`, { enabled })
	cli.out.answer(changed, state)
}

function listed(cli: Cli, agent: string): Promise<McpServer[]> {
	return cli.api.request<McpServer[]>('GET', path`/v1/agents/${agent}/mcp`)
}

async function find(cli: Cli, agent: string, wanted: string): Promise<McpServer> {
	const choice = { kind: 'MCP server', id: (one: McpServer) => one.id, names: (one: McpServer) => [one.name] }
	return pick(await listed(cli, agent), wanted, choice)
}

async function detailsOf(cli: Cli, agent: string, wanted: string): Promise<McpServerDetails> {
	return cli.api.request<McpServerDetails>('GET', path`/v1/agents/${agent}/mcp/${(await find(cli, agent, wanted)).id}`)
}

/** Shows the held definitions, asks, and returns their digests. */
async function consented(
	cli: Cli,
	{ tools, name }: McpServerDetails,
	agent: string,
	{ yes = false }: { yes?: boolean },
): Promise<string[]> {
	const held = tools.filter((one) => one.held)
	if (held.length === 0) return []
	if (!yes && (cli.out.json || !cli.ask.canAsk))
		throw new CliError('usage', 'this is not a terminal: give the --digest of each definition to accept, or --yes')
	cli.out.write(`${await changesText(held, cli.out.style)}\n\n`)
	await consent(cli, { yes }, `Let ${agent} use ${pluralize(held.length, 'tool')} of ${name}, as shown above?`)
	return held.map((one) => one.digest)
}
