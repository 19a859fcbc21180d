/** A real gateway for tests, in this process: with a temporary home, a free port and real sockets. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Agent, request } from 'undici'
import type { Dispatcher } from 'undici'
import { boot } from '../../core/boot.ts'
import type { Running } from '../../core/boot.ts'
import { clusterEnv } from './nats.ts'
import { eventTypesIn, watchEvents } from './documented.ts'
import { eventually } from './wait.ts'

export interface TestGateway {
	url: string
	home: string
	running: Running
	/** Sends an HTTP request, and parses a JSON response; other bodies are returned as text. Does not follow redirects or decompress. */
	request<T = Answer>(method: string, path: string, options?: RequestOptions): Promise<Reply<T>>
	/** Throws if an event was not as its plugin declares. */
	stop(): Promise<void>
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary responses
export type Answer = any

export interface RequestOptions {
	/** Sent as JSON; a string or Buffer is sent unchanged. */
	body?: unknown
	token?: string
	headers?: Record<string, string>
}

export interface Reply<T> {
	status: number
	headers: Headers
	body: T
}

export interface GatewayOptions {
	/** The text of gateway.yaml. */
	config?: string
	env?: NodeJS.ProcessEnv
	/** An existing home, which is not removed at the end. */
	home?: string
	/** Files to create in the home before the start, by path. */
	files?: Record<string, string>
	/** The test emits undeclared events. */
	madeUpEvents?: boolean
}

export async function startGateway(options: GatewayOptions = {}): Promise<TestGateway> {
	// Not a first start: the commented gateway.yaml takes longer to read.
	const home = options.home ?? makeHome({ config: '# all defaults\n', ...options })
	const env = {
		...(await clusterEnv(home)),
		SVC_PORT: '0',
		SVC_LEGACY_PORT: '0',
		SVC_LOG_LEVEL: 'fatal',
		...options.env,
	}
	const own = await eventTypesIn(join(home, 'plugins'))
	const running = await boot({ home, env, checkResponses: true })
	const mustBeDocumented = options.madeUpEvents ? () => {} : watchEvents(running.gateway.events, own)
	const { events, status } = running.gateway
	// Waits, so that the events of the start precede those of the test.
	const started = { types: ['gateway.started'], since: status.started_at }
	const isStored = async (): Promise<boolean> => (await events.read(started, null, 1, true)).entries.length > 0
	await eventually(async () => status.storeTrouble() !== null || isStored()).catch(async (error: unknown) => {
		await running.stop()
		throw error
	})
	const url = status.url('main') ?? ''
	return {
		url,
		home,
		running,
		request: (method, path, request) => send(url + path, method, request),
		async stop() {
			await running.stop()
			if (options.home === undefined) rmSync(home, { recursive: true, force: true })
			mustBeDocumented()
		},
	}
}

/** Starts a gateway that `t` stops at its end. */
export async function gatewayFor(t: Test, options: GatewayOptions = {}): Promise<TestGateway> {
	const gateway = await startGateway(options)
	t.teardown(() => gateway.stop())
	return gateway
}

export interface KillableGateway {
	url: string
	kill(): Promise<void>
}

/**
 * Replaces `spawnGateway` for a gateway that need not be killed, such as the last one of a test. It runs in this process, where a start
 * takes a fifth of the CPU time. `kill` stops it.
 */
export async function startHere(home: string, env: NodeJS.ProcessEnv = {}): Promise<KillableGateway> {
	const { url, stop } = await startGateway({ home, env })
	return { url, kill: stop }
}

/** Requests to the gateway that `current` returns, for a test whose gateway restarts at another port. */
export function apiOf(current: () => Pick<KillableGateway, 'url'>): Pick<TestGateway, 'url' | 'request'> {
	return {
		get url() {
			return current().url
		},
		request: (method, path, options) => send(current().url + path, method, options),
	}
}

/** A temporary home with a gateway.yaml and further files, which `t` removes at its end. */
export function makeHome({ config, files }: Pick<GatewayOptions, 'config' | 'files'> = {}, t?: Test): string {
	const home = mkdtempSync(join(tmpdir(), 'svc-test-'))
	t?.teardown(() => rmSync(home, { recursive: true, force: true }))
	const all = { ...(config !== undefined && { 'config/gateway.yaml': config }), ...files }
	for (const [path, text] of Object.entries(all)) {
		const file = join(home, path)
		mkdirSync(join(file, '..'), { recursive: true })
		writeFileSync(file, text)
	}
	return home
}

const dispatcher = new Agent()

export async function send<T = Answer>(
	url: string,
	method: string,
	{ body, token, headers }: RequestOptions = {},
): Promise<Reply<T>> {
	const raw = typeof body === 'string' || Buffer.isBuffer(body)
	// Not `fetch`, which takes three times as much CPU time: the tests make tens of thousands of requests.
	const response = await request(url, {
		dispatcher,
		method: method as Dispatcher.HttpMethod,
		headers: {
			...(body !== undefined && { 'content-type': 'application/json' }),
			...(token !== undefined && { authorization: `Bearer ${token}` }),
			...headers,
		},
		...(body !== undefined && { body: raw ? (body as string | Buffer) : JSON.stringify(body) }),
	})
	const text = await response.body.text()
	const answered = new Headers()
	for (const [name, values = []] of Object.entries(response.headers))
		for (const value of [values].flat()) answered.append(name, value)
	const isJson = (answered.get('content-type') ?? '').includes('json')
	return {
		status: response.statusCode,
		headers: answered,
		body: (isJson && text !== '' ? JSON.parse(text) : text) as T,
	}
}
