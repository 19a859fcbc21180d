/** MCP servers for tests: real ones, and our own small one with faults. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from './free-ports.ts'
import type { Answer, TestGateway } from './gateway.ts'
import type { Followed } from './runs.ts'
import { eventually } from './wait.ts'

/** Scripts for `args`. */
export const servers = {
	fixture: fileURLToPath(new URL('../fixtures/mcp/server.mjs', import.meta.url)),
	sdk: fileURLToPath(new URL('../fixtures/mcp/sdk-server.mjs', import.meta.url)),
	everything: fileURLToPath(
		new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
	),
	files: fileURLToPath(
		new URL('../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', import.meta.url),
	),
	memory: fileURLToPath(
		new URL('../../node_modules/@modelcontextprotocol/server-memory/dist/index.js', import.meta.url),
	),
}

/** The fields of a request for a stdio server that runs this script. */
export function stdio(name: string, script: string, ...args: string[]): Record<string, unknown> {
	return { name, transport: 'stdio', command: process.execPath, args: [script, ...args] }
}

/**
 * Adds a server to an agent and returns the response. If the gateway answered before the first attempt to connect had ended, `status`
 * is replaced by that after the attempt. Throws if the server is refused.
 */
export async function add(agent: Pick<Followed, 'call'>, fields: Record<string, unknown>): Promise<Answer> {
	const { status, body } = await agent.call('mcp', fields)
	if (status !== 201) throw new Error(`the server was refused: ${status} ${JSON.stringify(body)}`)
	if (body.status !== 'connecting') return body
	const now = await eventually(
		async (): Promise<string> => (await agent.call(`mcp/${body.id}`)).body.status,
		(one) => one !== 'connecting',
	)
	return { ...body, status: now }
}

/** Waits until a server meets a condition. */
export async function until(
	gateway: Pick<TestGateway, 'request'>,
	agent: string,
	id: string,
	condition: (server: Answer) => boolean,
): Promise<Answer> {
	return eventually(async () => (await gateway.request('GET', `/v1/agents/${agent}/mcp/${id}`)).body, condition)
}

/** Calls a tool in a run of the offline provider, and returns the call's final event. */
export async function callTool(agent: Followed, tool: string, args: object = {}): Promise<Answer> {
	const run_id = await agent.complete(`/tool ${tool} ${JSON.stringify(args)}`)
	const { event_type, payload } = agent
		.eventsOf(run_id)
		.find((event) => ['mcp.result', 'mcp.failed', 'primitive.failed'].includes(event.event_type)) ?? {
		event_type: 'none',
		payload: {},
	}
	return { event_type, ...payload }
}

/** True while a process with this id exists. */
export function isRunning(pid: number): boolean {
	try {
		process.kill(pid, 0)
		return true
	} catch {
		return false
	}
}

/** Waits until none of these processes is running. Returns an empty list, for assertions. */
export async function gone(pids: readonly number[]): Promise<number[]> {
	return eventually(
		() => pids.filter(isRunning),
		(left) => left.length === 0,
	)
}

export interface WebServer {
	url: string
	stop(): Promise<void>
}

/** The reference server over HTTP, on a free port or the given one. */
export async function startEverything(t: Test, kind: 'sse' | 'streamableHttp', port?: number): Promise<WebServer> {
	const at = port ?? (await freePort())
	const child = spawn(process.execPath, [servers.everything, kind], {
		env: { PATH: process.env.PATH, PORT: String(at) },
		stdio: ['ignore', 'ignore', 'pipe'],
	})
	const exited = once(child, 'exit')
	const stop = async (): Promise<void> => {
		child.kill('SIGKILL')
		await exited
	}
	t.teardown(stop)
	await new Promise<void>((resolve, reject) => {
		let text = ''
		child.stderr.on('data', (data: Buffer) => {
			text += data.toString()
			if (/port \d+/.test(text)) resolve()
		})
		child.once('exit', () => reject(new Error(`the server ended: ${text}`)))
	})
	return { url: `http://127.0.0.1:${at}${kind === 'sse' ? '/sse' : '/mcp'}`, stop }
}
