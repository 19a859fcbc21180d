import { Option } from 'commander'
import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { count } from '../count.ts'
import { changesText } from '../mcp-changes.ts'
import { mcpRequest } from '../mcp-request.ts'
import type { AddOptions } from '../mcp-request.ts'
import { details, state } from '../mcp-text.ts'
import type { Details, Server } from '../mcp-text.ts'
import { pick } from '../pick.ts'

export const register: Register = (program, cli) => {
	const mcp = program.command('mcp').description('Give agents tools of MCP servers').addHelpText('after', examples)

	mcp
		.command('list <agent>')
		.description('List the MCP servers of an agent')
		.action(async (agent: string) => {
			cli.out.answer(await listed(agent), (list, style) =>
				style.table(
					['server', 'transport', 'status', 'id'],
					list.map((one) => [one.name, one.transport, one.status, one.id]),
					`No MCP servers yet; svc mcp --help shows how to add one.`,
				),
			)
		})

	mcp
		.command('show <agent> <server>')
		.description('Show how a server is, and what it last said on standard error')
		.action(async (agent: string, wanted: string) => {
			cli.out.answer(await detailsOf(agent, wanted), details)
		})

	mcp
		.command('tools <agent> <server>')
		.description('List the tools that a server offers')
		.action(async (agent: string, wanted: string) => {
			const { tools, not_offered, name } = await detailsOf(agent, wanted)
			cli.out.answer(tools, (list, style) =>
				style.table(
					['tool', 'state', 'description'],
					list.map((one) => [one.tool, one.held ? 'held back' : 'offered', one.description]),
					'It offers no tools.',
				),
			)
			for (const why of not_offered) cli.out.note(`Left out: ${why}`)
			if (tools.some((one) => one.held)) cli.out.note(`To look at what changed: svc mcp accept ${agent} ${name}`)
		})

	mcp
		.command('add <agent> <name> [command...]')
		.description('Give an agent a server: a program with its arguments behind --, or an address')
		.option('--url <address>', 'of a server over Streamable HTTP or the older SSE')
		.addOption(new Option('--transport <name>', 'with --url: sse tries both, the default').choices(['sse', 'http']))
		.option('--env <name=value...>', 'an environment variable of the program; {{secret:NAME}} stands for a secret')
		.option('--header <name: value...>', 'a header for the address; {{secret:NAME}} stands for a secret')
		.action(async (agent: string, name: string, command: string[], options: AddOptions) => {
			const body = mcpRequest(name, command, options)
			using progress = cli.out.progress(`Connecting ${name}`)
			const added = await cli.api.request<Server>('POST', path`/v1/agents/${agent}/mcp`, body)
			progress.done()
			cli.out.answer(added, (one, style) => state(one, style))
			if (added.status !== 'connected' && added.status !== 'connecting')
				throw new CliError('failed', `${name} was added, and does not work so far: svc mcp show ${agent} ${name}`)
		})

	mcp
		.command('accept <agent> <server>')
		.description('Show which tools changed their definitions, ask, and accept what was shown')
		.option('--digest <sha256...>', 'accept these definitions without asking')
		.option(...yesOption)
		.action(async (agent: string, wanted: string, options: { digest?: string[]; yes?: boolean }) => {
			const before = await detailsOf(agent, wanted)
			const digests = options.digest ?? (await consented(before, agent, options))
			if (digests.length === 0) return cli.out.answer(before, ({ name }) => `Nothing of ${name} is held back.`)
			const where = path`/v1/agents/${agent}/mcp/${before.id}/accept`
			const after = await cli.api.request<Details>('POST', where, { digests })
			cli.out.answer(after, ({ name }) => `Accepted ${count(digests.length, 'definition')} of ${name}.`)
		})

	for (const [word, enabled, description] of [
		['enable', true, 'Switch a server on'],
		['disable', false, 'Switch a server off; its process or session ends'],
	] as const) {
		mcp
			.command(`${word} <agent> <server>`)
			.description(description)
			.action(async (agent: string, wanted: string) => {
				const { id } = await find(agent, wanted)
				const changed = await cli.api.request<Server>('PATCH', path`/v1/agents/${agent}/mcp/${id}`, { enabled })
				cli.out.answer(changed, state)
			})
	}

	mcp
		.command('restart <agent> <server>')
		.description('Connect a server anew; calls that are under way end')
		.action(async (agent: string, wanted: string) => {
			const { id, name } = await find(agent, wanted)
			using progress = cli.out.progress(`Connecting ${name}`)
			const restarted = await cli.api.request<Server>('POST', path`/v1/agents/${agent}/mcp/${id}/restart`)
			progress.done()
			cli.out.answer(restarted, state)
		})

	mcp
		.command('remove <agent> <server>')
		.description('Take a server away from an agent; its process or session ends')
		.option(...yesOption)
		.action(async (agent: string, wanted: string, options: { yes?: boolean }) => {
			const { id, name } = await find(agent, wanted)
			await consent(cli, options, `Take the MCP server ${name} away from ${agent}?`)
			await cli.api.request('DELETE', path`/v1/agents/${agent}/mcp/${id}`)
			cli.out.answer({ id, status: 'deleted' }, () => `Removed ${name}.`)
		})

	function listed(agent: string): Promise<Server[]> {
		return cli.api.request<Server[]>('GET', path`/v1/agents/${agent}/mcp`)
	}

	async function find(agent: string, wanted: string): Promise<Server> {
		const choice = { kind: 'MCP server', id: (one: Server) => one.id, names: (one: Server) => [one.name] }
		return pick(await listed(agent), wanted, choice)
	}

	async function detailsOf(agent: string, wanted: string): Promise<Details> {
		return cli.api.request<Details>('GET', path`/v1/agents/${agent}/mcp/${(await find(agent, wanted)).id}`)
	}

	/** The digests of what was shown and agreed to. */
	async function consented(
		{ tools, name }: Details,
		agent: string,
		{ yes = false }: { yes?: boolean },
	): Promise<string[]> {
		const held = tools.filter((one) => one.held)
		if (held.length === 0) return []
		if (!yes && (cli.out.json || !cli.ask.canAsk))
			throw new CliError('usage', 'nobody can be asked here: give the --digest of what to accept, or --yes')
		cli.out.write(`${await changesText(held, cli.out.style)}\n\n`)
		await consent(cli, { yes }, `Let ${agent} use ${count(held.length, 'tool')} of ${name}, as shown above?`)
		return held.map((one) => one.digest)
	}
}

const examples = `
Examples:
  svc mcp add ada files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  svc mcp add ada tracker --url https://example.com/mcp --header 'Authorization: Bearer {{secret:TRACKER}}'
  svc mcp tools ada files
  svc mcp accept ada files                 after a server changed the definition of a tool`
