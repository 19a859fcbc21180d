/** The servers of all agents: their records, and a connection for each. */
import { Fault, isFault } from '../../core/errors.ts'
import { openNotices } from '../../core/events/notices.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { openSemaphore } from '../../core/util/semaphore.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import { checkAddress, checkAllowances, checkCommand, checkPlain, checkReferences } from './access.ts'
import type { ServerConnection, ConnectionServices } from './connection.ts'
import type { McpServer, McpServerDetails, McpServers, McpSettings, McpStatus, NewMcpServer } from './contract.ts'
import { checkVariable } from './environment.ts'
import { openConnectionRegistry } from './connection-registry.ts'
import type { ConnectionRegistry } from './connection-registry.ts'
import type { Login } from './login/login.ts'
import { toolName } from './names.ts'
import { acceptHeld } from './pins.ts'
import type { Pin } from './pins.ts'
import type { Processes } from './processes.ts'
import { noServer, recordsOf } from './records.ts'
import type { McpRecord } from './records.ts'
import { samplerOf } from './sampling.ts'
import { sealValues } from './values.ts'

/** Number of connections that are made at the same time. */
const STARTING_LIMIT = 6
/** An attempt that hangs frees its place after this time. */
const STARTING_MS = 5_000
/** Burst of events about refused logins of one server: anyone who knows its id can cause them. */
const NOTICES = 10

export function serversOf(
	ctx: Context<McpSettings>,
	processes: Processes,
): McpServers & { registry: ConnectionRegistry } {
	const records = recordsOf(ctx.store)
	const starting = openSemaphore(STARTING_LIMIT, { hold_ms: STARTING_MS })
	const services: ConnectionServices = { ...ctx, sample: samplerOf(ctx), processes, records, starting }
	const connectionTo = async (agent: AgentRef, record: McpRecord): Promise<ServerConnection> => {
		// Loaded with the first server: an idle gateway does not keep the protocol's code in memory.
		const connection = await import('./connection.ts')
		const login = await loginFor(record, agent, ctx)
		return new connection.ServerConnection(record, agent, await records.pins(agent, record.id), { ...services, login })
	}
	const registry = openConnectionRegistry(records, connectionTo)
	const notice = openNotices(NOTICES, ctx)

	const find = async (agent: AgentRef, id: string): Promise<ServerConnection> => {
		const connection = (await registry.of(agent)).get(id)
		if (!connection) throw noServer(agent, id)
		return connection
	}
	const reconnect = async (connection: ServerConnection): Promise<void> => {
		await connection.restart(true)
		await connection.settled()
	}

	return {
		registry,
		async list(agent) {
			return [...(await registry.of(agent)).values()].map(view)
		},
		statuses() {
			const counts = new Map<McpStatus, number>()
			for (const { status } of registry.all()) counts.set(status, (counts.get(status) ?? 0) + 1)
			return counts
		},
		async get(agent, id) {
			return details(await find(agent, id))
		},
		async login(agent, id, browser) {
			return loginOf(await find(agent, id)).begin(browser)
		},
		async completeLogin(returned, browser, of) {
			const { searchParams } = returned
			const [id = ''] = (searchParams.get('state') ?? '').split('.')
			const connection = [...registry.all()].find(({ record }) => record.id === id)
			if (!connection?.login || (of && (of.id !== id || of.agent.uid !== connection.agent.uid)))
				throw new Fault('invalid_request', 'this login does not exist; start another one')
			const { record, agent, login } = connection
			try {
				await login.finish(searchParams, browser)
			} catch (error) {
				if (isFault(error, 'forbidden', 'invalid_request')) {
					const about = { reason: 'mcp_login_refused', message: error.message, server: record.name }
					notice(id, (untold) => {
						const event = { event_type: 'security.violation', payload: { ...about, ...untold } }
						void emitOrLog(ctx, event, agent.name)
					})
				}
				throw error
			}
			if (record.enabled) await reconnect(connection)
			await answerWaiting(agent, record, ctx)
			return { agent: agent.name, server: view(connection) }
		},
		async logout(agent, id) {
			const connection = await find(agent, id)
			await loginOf(connection).logout()
			if (connection.record.enabled) await reconnect(connection)
			return view(connection)
		},
		async add(agent, wanted, permissions) {
			if (ctx.signal.aborted) throw new Fault('unavailable', 'the settings are being changed; try again')
			if (!permissions.secrets) checkReferences(wanted, ctx.find('vault')?.named ?? (() => []))
			if (!permissions.trusted) checkAllowances(wanted)
			await check(wanted, permissions.trusted, ctx.config)
			checkPlain(wanted, ctx.redactor.of([{ uid: agent.uid }]))
			const id = newId()
			const { name, transport, command, args, url, env, headers, auth, sampling, roots = [] } = wanted
			const values = await sealValues({ wanted: env ?? headers ?? {}, url }, id, ctx)
			const authSecrets = [auth?.client_secret?.secret, auth?.private_key?.secret].filter((name) => name !== undefined)
			const record: McpRecord = {
				id,
				name,
				transport,
				...(transport === 'stdio' ? { command: command ?? '', args: args ?? [] } : { url: url ?? '' }),
				...values,
				secrets: [...new Set([...values.secrets, ...authSecrets])],
				...(auth && { auth }),
				trusted: permissions.trusted,
				secrets_allowed: permissions.secrets,
				...(sampling === true && { sampling }),
				...(roots.length > 0 && { roots }),
				enabled: true,
				created_at: now(),
			}
			const connection = await connectionTo(agent, record)
			const connections = await registry.of(agent, true)
			await records.add(agent, record, ctx.config.max_per_agent)
			connections.set(id, connection)
			await ctx.emit({ event_type: 'mcp.added', payload: aboutRecord(record) }, agent.name)
			await connection.start(true)
			await connection.settled()
			const { status, status_detail } = connection.state()
			return { ...view(connection), ...(status !== 'connected' && { status_detail }) }
		},
		async remove(agent, id) {
			const connection = await find(agent, id)
			await records.remove(agent, connection.record)
			;(await registry.of(agent)).delete(id)
			await connection.dispose()
			await ctx.emit({ event_type: 'mcp.removed', payload: aboutRecord(connection.record) }, agent.name)
		},
		async enable(agent, id, enabled) {
			const connection = await find(agent, id)
			connection.record.enabled = (await records.enable(agent, id, enabled)).enabled
			if (enabled) {
				await connection.start(true)
				await connection.settled()
			} else await connection.stop()
			return view(connection)
		},
		async restart(agent, id) {
			const connection = await find(agent, id)
			if (!connection.record.enabled) {
				throw new Fault('conflict', `the MCP server "${connection.record.name}" is switched off`, {
					hint: {
						route: 'PATCH /v1/agents/{id}/mcp/{mcp_id}',
						params: { id: agent.name, mcp_id: id },
						known_as: `PATCH /v1/agents/${agent.name}/mcp/${id} with enabled: true`,
						does: 'switches it on',
					},
				})
			}
			await reconnect(connection)
			return view(connection)
		},
		async accept(agent, id, digests) {
			const connection = await find(agent, id)
			let accepted: string[] = []
			const pins = await records.changePins(agent, id, (before) => {
				const held = (before?.tools ?? []).flatMap((pin) => pin.held?.digest ?? [])
				const unknown = digests?.find((digest) => !held.includes(digest))
				if (unknown !== undefined) {
					throw new Fault(
						'digest_mismatch',
						`no held tool has the digest ${unknown}; it may have changed again: read the server, and accept the current digest`,
					)
				}
				const next = acceptHeld(before ?? { tools: [] }, digests)
				accepted = next.accepted
				return accepted.length > 0 ? next.pins : undefined
			})
			if (pins) connection.pins = pins
			if (accepted.length > 0) {
				const payload = { ...aboutRecord(connection.record), tools: accepted }
				await ctx.emit({ event_type: 'mcp.accepted', payload }, agent.name)
			}
			return details(connection)
		},
	}
}

async function check(wanted: NewMcpServer, trusted: boolean, config: McpSettings): Promise<void> {
	const { command, args = [], env = {}, url } = wanted
	for (const name of Object.keys(env)) checkVariable(name)
	if (wanted.transport === 'stdio') {
		if (!trusted) checkCommand({ command: command ?? '', args, variables: Object.keys(env) }, config)
	} else await checkAddress(url ?? '', trusted, config)
}

function view({ record, status, pins }: ServerConnection): McpServer {
	const held = pins.tools.filter((pin) => pin.held && pin.listed).length
	const { id, name, transport } = record
	return { id, name, transport, status, ...(held > 0 && { held_tools: held }) }
}

function loginOf({ login, record }: ServerConnection): Login {
	if (login) return login
	const why =
		record.transport === 'stdio' ? 'it is a program' : 'its auth is none, or its headers contain Authorization'
	throw new Fault('conflict', `a person cannot sign in to the MCP server "${record.name}": ${why}`)
}

async function loginFor(record: McpRecord, agent: AgentRef, ctx: Context<McpSettings>): Promise<Login | undefined> {
	const { transport, auth, names } = record
	if (transport === 'stdio' || auth?.type === 'none') return undefined
	if (!auth && Object.keys(names).some((name) => name.toLowerCase() === 'authorization')) return undefined
	const { Login } = await import('./login/login.ts')
	return new Login(record, agent, ctx)
}

/** Resumes the runs that wait for this login (`auth.wait`). */
async function answerWaiting(agent: AgentRef, { name, auth }: McpRecord, ctx: Context<McpSettings>): Promise<void> {
	const runs = auth?.wait ? ctx.find('runs') : undefined
	const { SIGNED_IN } = await import('./connection.ts')
	for (const { question, kind, question_id } of (await runs?.questions(agent)) ?? []) {
		if (kind !== 'login' || !question.startsWith(`the MCP server "${name}" `)) continue
		await runs?.answer(agent, question_id, SIGNED_IN).catch((error: unknown) => {
			if (!isFault(error)) throw error // already answered
		})
	}
}

async function details(connection: ServerConnection): Promise<McpServerDetails> {
	const { record, pins, login } = connection
	const { id, name, transport, command, args, url, names, auth, sampling = false, roots = [], created_at } = record
	return {
		id,
		name,
		transport,
		...(transport === 'stdio'
			? { command: command ?? '', args: args ?? [], env: names }
			: { url: url ?? '', headers: names, ...(auth && { auth }), login: (await login?.view()) ?? null }),
		sampling,
		roots,
		...connection.state(),
		tools: pins.tools.filter((pin) => pin.listed).map((pin) => toolOf(name, pin)),
		created_at,
	}
}

function toolOf(server: string, { definition, held }: Pin): McpServerDetails['tools'][number] {
	const { name, description, input_schema, annotations, digest } = held ?? definition
	const tool = { name, tool: toolName(server, name), description, input_schema, annotations, digest, held: !!held }
	if (!held) return tool
	const { name: _name, digest: _digest, ...accepted } = definition
	return { ...tool, accepted }
}

function aboutRecord({ id, name, transport, command, args, url }: McpRecord): Record<string, unknown> {
	return { server: name, mcp_id: id, transport, ...(transport === 'stdio' ? { command, args } : { url }) }
}
