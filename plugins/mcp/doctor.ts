/** Checks of `svc doctor`: the programs and addresses of MCP servers, and the connections of running ones. */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { error, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { DoctorFile, Finding, CheckContext } from '../../core/cli/doctor/contract.ts'
import { isFault, messageOf } from '../../core/errors.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { McpServerDetails } from './contract.ts'
import { recordsOf } from './records.ts'
import type { McpRecord } from './records.ts'

/** Limits of the agents whose servers are checked, and of the servers in total. */
const AGENTS = 1_000
const SERVERS = 200

/** A server that is switched on; with its state if the gateway is running. */
interface Seen extends Pick<McpRecord, 'name' | 'transport' | 'command' | 'url'>, Partial<Pick<McpRecord, 'trusted'>> {
	agent: string
	id: string
	now?: Pick<McpServerDetails, 'status' | 'status_detail'>
}

export default {
	variables: { SVC_MCP_PROCESS: 'plain' },
	checks: [
		{
			id: 'mcp.command',
			about: 'the programs of MCP servers',
			async run(context) {
				const servers = (await serversOf(context)).filter(({ transport }) => transport === 'stdio')
				const findings = await Promise.all(
					// The program of a connected server was found.
					servers.map(async ({ command = '', ...server }) =>
						server.now?.status === 'connected' || (await isProgram(command, context.env))
							? []
							: missing(server, command),
					),
				)
				const problems = findings.flat()
				return problems.length > 0 || servers.length === 0
					? problems
					: ok(`the program of each MCP server is there (${servers.length})`)
			},
		},
		{
			id: 'mcp.connection',
			about: 'the connections of MCP servers',
			async run(context) {
				const all = await serversOf(context)
				const servers = (await context.gateway()) ? all : all.filter(({ transport }) => transport !== 'stdio')
				const problems = (await Promise.all(servers.map((server) => connectionOf(server, context)))).flat()
				return problems.length > 0 || servers.length === 0
					? problems
					: ok(`each MCP server answers (${servers.length})`)
			},
		},
	],
} satisfies DoctorFile

function missing({ agent, name }: Pick<Seen, 'agent' | 'name'>, command: string): Finding {
	return error(
		`the MCP server ${name} of agent ${agent} needs the program ${command}, which was not found`,
		`install it for the user of the gateway, or use its absolute path: svc mcp remove ${agent} ${name}, then svc mcp add`,
	)
}

async function connectionOf({ agent, name, now, url = '', trusted }: Seen, context: CheckContext): Promise<Finding[]> {
	const advice = `fix the cause, then reconnect it: svc mcp restart ${agent} ${name}`
	if (now) {
		if (now.status === 'connected' || now.status === 'connecting') return []
		if (now.status === 'needs_login') return [warning(now.status_detail, `sign in: svc mcp login ${agent} ${name}`)]
		const found = now.status === 'error' ? error : warning
		return [found(`the MCP server ${name} of agent ${agent} is not connected: ${now.status_detail}`, advice)]
	}
	try {
		const { allowed_hosts } = (await context.config()).mcp
		// Any answer shows that the server is there.
		await context.ask(url, trusted ? {} : { private_hosts: allowed_hosts })
		return []
	} catch (thrown) {
		if (!isFault(thrown)) throw thrown
		return [warning(`the MCP server ${name} of agent ${agent} does not answer: ${messageOf(thrown)}`, advice)]
	}
}

function serversOf(context: CheckContext): Promise<Seen[]> {
	return context.once('mcp servers', async () => {
		const gateway = await context.gateway()
		const servers = gateway ? await running(gateway) : await recorded(context)
		return servers.slice(0, SERVERS)
	})
}

async function recorded(context: CheckContext): Promise<Seen[]> {
	const store = await context.store()
	const servers: Seen[] = []
	if (!store) return servers
	for await (const agent of store.list<AgentRecord>(['agents'], { limit: AGENTS })) {
		for (const server of await recordsOf(store).list(agent.value))
			if (server.enabled) servers.push({ ...server, agent: agent.value.name })
	}
	return servers
}

async function running(gateway: NonNullable<Awaited<ReturnType<CheckContext['gateway']>>>): Promise<Seen[]> {
	const servers: Seen[] = []
	const agents = await gateway.get<{ name: string }[]>('/v1/agents')
	for (const { name: agent } of agents.slice(0, AGENTS)) {
		const path = `/v1/agents/${encodeURIComponent(agent)}/mcp`
		const listed = await gateway.get<Pick<McpServerDetails, 'id' | 'status'>[]>(path)
		for (const { id, status } of listed.slice(0, SERVERS - servers.length)) {
			if (status === 'disabled') continue
			const details = await gateway.get<McpServerDetails>(`${path}/${id}`)
			servers.push({ ...details, agent, now: details })
		}
	}
	return servers
}

/** Whether the gateway would find the program: by its absolute path, or in PATH. */
async function isProgram(command: string, { PATH = '', PATHEXT }: NodeJS.ProcessEnv): Promise<boolean> {
	const folders = isAbsolute(command) ? [''] : PATH.split(delimiter).filter((folder) => folder !== '')
	const endings = process.platform === 'win32' ? ['', ...(PATHEXT ?? '.EXE;.CMD').split(';')] : ['']
	for (const folder of folders) {
		for (const ending of endings) {
			const file = (folder === '' ? command : join(folder, command)) + ending
			const isThere = await access(file, constants.X_OK).then(
				() => true,
				() => false,
			)
			if (isThere) return true
		}
	}
	return false
}
