/** A local server that replaces the internet: requests of a guarded client to any host arrive here. */
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { guardedFetch } from '../../core/fetch/guarded-fetch.ts'
import { listenOnLoopback } from './loopback.ts'

export interface ReceivedRequest {
	method: string
	/** The requested URL, with its real host. */
	url: string
	headers: Record<string, string | string[] | undefined>
	body: string
}

export interface FakeResponse {
	status?: number
	headers?: Record<string, string>
	/** Sent as JSON unless it is text. */
	body?: unknown
}

export interface FakeInternet {
	/** Replaces the guarded client, whose rules (hosts, size, time) still apply. */
	send: typeof guardedFetch
	arrived: ReceivedRequest[]
}

export async function startFakeInternet(
	t: Test,
	answer: (request: ReceivedRequest) => FakeResponse | Promise<FakeResponse>,
): Promise<FakeInternet> {
	const arrived: ReceivedRequest[] = []
	const server = createServer((request, response) => {
		void (async () => {
			let body = ''
			for await (const part of request.setEncoding('utf8')) body += String(part)
			const { 'x-real-url': url = '', host: _, ...headers } = request.headers
			const one = { method: request.method ?? '', url: String(url), headers, body }
			arrived.push(one)
			const given = await answer(one)
			const isText = typeof given.body === 'string'
			response.writeHead(given.status ?? 200, {
				'content-type': isText ? 'text/plain' : 'application/json',
				...given.headers,
			})
			response.end(isText ? given.body : JSON.stringify(given.body ?? {}))
		})()
	})
	const { port, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return {
		arrived,
		send(url, init, options) {
			const headers = [...(init.headers as [string, string][]), ['x-real-url', String(url)] as [string, string]]
			const here = `127.0.0.1:${port}`
			const { hosts = [], bound = [] } = options.policy
			const policy = {
				...options.policy,
				hosts: [...hosts, here],
				bound: bound.map((list) => [...list, here]),
				protocols: ['http:', 'https:'],
				private_first: true,
			} as const
			return guardedFetch(`http://${here}/`, { ...init, headers }, { ...options, policy })
		},
	}
}
