/** The measured gateway: a separate process with an empty home, and helpers for its clients. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import type { ClientRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createParser } from 'eventsource-parser'
import { spawnGateway } from '../support/process.ts'
import type { SpawnOptions } from '../support/process.ts'
import { bodyOf, Connection } from './connection.ts'

export interface Subject extends AsyncDisposable {
	url: string
	pid: number
	/** Milliseconds from the process's start to its startup banner. */
	ready_ms: number
}

export interface SubjectOptions {
	/** The model server; without it, the offline provider answers. */
	modelUrl?: string
	/** Files of its home, by path. */
	files?: Record<string, string>
	env?: NodeJS.ProcessEnv
	/** How it is started. Default: from the bundle, like an installed gateway. */
	from?: SpawnOptions['from']
}

export async function startSubject({
	modelUrl,
	files = {},
	env = {},
	from = 'bundle',
}: SubjectOptions = {}): Promise<Subject> {
	const home = mkdtempSync(join(tmpdir(), 'svc-bench-'))
	// A measurement with a model has an agent for each run.
	const settings = modelUrl === undefined ? {} : { 'config/gateway.yaml': 'agents: {max_agents: 100000}\n' }
	for (const [path, text] of Object.entries({ ...settings, ...files })) {
		mkdirSync(join(home, path, '..'), { recursive: true })
		writeFileSync(join(home, path), text)
	}
	const model =
		modelUrl === undefined ? {} : { OPENAI_API_KEY: 'bench', OPENAI_BASE_URL: modelUrl, OPENAI_MODEL: 'bench' }
	const gateway = await spawnGateway(home, { ...model, ...env }, { from })
	// A failed measurement ends the bench, which must not leave a gateway running.
	const kill = (): void => void gateway.child.kill('SIGKILL')
	process.once('exit', kill)
	return {
		url: gateway.url,
		pid: gateway.pid,
		ready_ms: gateway.ready_ms,
		async [Symbol.asyncDispose]() {
			await gateway.end()
			process.off('exit', kill)
			rmSync(home, { recursive: true, force: true })
		},
	}
}

let agents = 0

/** Creates agents, and returns their names. */
export async function makeAgents(connections: readonly Connection[], count: number): Promise<string[]> {
	const names = Array.from({ length: count }, () => `agent-${agents++}`)
	const left = names.values()
	const make = async (connection: Connection): Promise<void> => {
		for (const name of left) bodyOf(await connection.post('/v1/agents', { name }))
	}
	await Promise.all(connections.map(make))
	return names
}

export function connections(url: string, count: number): Promise<Connection[]> {
	return Promise.all(Array.from({ length: count }, () => Connection.open(url)))
}

export interface Event {
	run_id: string
	event_type: string
	payload: Record<string, unknown>
}

/** One SSE stream of the gateway's events. Settles once it is open. */
export async function listen(url: string, types: string[], heard: (event: Event) => void): Promise<Disposable> {
	const parser = createParser({ onEvent: ({ data }) => heard(JSON.parse(data) as Event) })
	const opened = Promise.withResolvers<void>()
	const request: ClientRequest = get(
		`${url}/v1/events/stream?event_type=${types.join(',')}`,
		{ agent: false },
		(response) => {
			if (response.statusCode !== 200) opened.reject(new Error(`the stream was answered with ${response.statusCode}`))
			response.setEncoding('utf8')
			// The gateway sends a comment as soon as the stream is open.
			response.on('data', (text: string) => {
				opened.resolve()
				parser.feed(text)
			})
			response.on('error', () => {}) // ends with the gateway
		},
	)
	request.on('error', (error) => opened.reject(error))
	await opened.promise
	return { [Symbol.dispose]: () => void request.destroy() }
}
