/** The gateway that the clients use: in a separate process, with a scripted model and a token. */
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import assert from 'node:assert/strict'
import { makeHome, send } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { latest, startSmallModel } from '../support/small-model.ts'
import type { SmallReply, SmallRequest } from '../support/small-model.ts'
import { eventually } from '../support/wait.ts'

interface Delivery {
	headers: Record<string, string>
	body: string
}

/** The gateway, as a client gets it. */
export interface Target {
	url: string
	token: string
	agent: string
	/** Starts a run; settles with its id. */
	start(prompt: string): Promise<string>
	/** The number of the agent's failed runs. */
	failures(): Promise<number>
	/** Starts a proxy of the gateway that can cut connections. */
	cutting(): Promise<CutProxy>
	/** Creates a webhook. `runs`: waits until it has started this number of runs, and throws if there are more. */
	webhook(
		scheme: string,
		secret: string,
	): Promise<{ post(delivery: Delivery, status: number): Promise<void>; runs(count: number): Promise<void> }>
	/** `createGateway` of core/client. */
	createGateway: unknown
}

interface CutProxy {
	url: string
	/** Cuts the next connection on which a client is sent this text, right after the text. */
	cutAfter(text: string): void
	cuts(): number
}

const BERN = '{"name":"Bern","people":146348}'

function replyTo(request: SmallRequest): SmallReply {
	const { prompt, results } = latest(request)
	const asksTo = (text: string): boolean => prompt.includes(text)
	if (asksTo('say hello')) return 'Hello!'
	if (asksTo('and again')) return 'Hello again!'
	if (asksTo('name a city')) return BERN
	if (asksTo('call for a city')) return { name: 'city', arguments: BERN }
	if (asksTo('be refused')) return { status: 400, message: 'The request is invalid.' }
	if (asksTo('what is the weather'))
		return results.length > 0 ? 'It rains.' : { name: 'weather', arguments: '{"city":"Bern"}' }
	if (asksTo('ask me which one'))
		return results[0]
			? `You said ${JSON.parse(results[0]).answer}.`
			: { name: 'ask', arguments: '{"question":"Which?"}' }
	return 'Noted.'
}

export async function openTarget(createGateway: unknown): Promise<Target & AsyncDisposable> {
	await using stack = new AsyncDisposableStack()
	const model = await startSmallModel(
		{ teardown: (end: () => Promise<void>) => stack.defer(end) } as never,
		1e6,
		replyTo,
	)
	const home = makeHome({
		config: `server: {shutdown_grace_s: 0}
plugins: {openai-api: true, mcp-server: true}
providers: {model: {kind: openai, base_url: "${model.url}", api_key: k, model: m}}
`,
	})
	stack.defer(() => rmSync(home, { recursive: true, force: true }))
	const { url, kill } = await spawnGateway(home)
	stack.defer(kill)
	const request = async (method: string, path: string, body?: unknown): Promise<Answer> => {
		const { status, body: answer } = await send<Answer>(url + path, method, body === undefined ? {} : { body })
		assert(status < 300, `${method} ${path}: ${status} ${JSON.stringify(answer)}`)
		return answer
	}
	const agent = 'ada'
	await request('POST', '/v1/agents', { name: agent })
	const { token } = await request('POST', '/v1/auth/tokens', { scopes: ['*'] })
	let hooks = 0
	const all = stack.move()
	return {
		url,
		token,
		agent,
		createGateway,
		start: async (prompt) => (await request('POST', `/v1/agents/${agent}/runs`, { prompt })).run_id,
		async failures() {
			const failed = await request('GET', `/v1/agents/${agent}/runs?status=failed&limit=500`)
			return failed.length
		},
		async cutting() {
			const proxy = await startCutProxy(url)
			all.defer(proxy.stop)
			return proxy
		},
		async webhook(scheme, secret) {
			const owner = `hooked-${hooks++}`
			await request('POST', '/v1/agents', { name: owner })
			const hook = await request('POST', `/v1/agents/${owner}/webhooks`, { slug: 'sender', scheme, secret })
			return {
				async post({ headers, body }, status) {
					const response = await fetch(new URL(hook.url, url), { method: 'POST', headers, body })
					assert.equal(response.status, status, await response.text())
				},
				async runs(count) {
					const runs = (): Promise<Answer> => request('GET', `/v1/agents/${owner}/runs?limit=100`)
					const isOver = ({ status }: Answer): boolean => status === 'completed'
					const found = await eventually(runs, (list) => list.length >= count && list.every(isOver))
					assert.equal(found.length, count)
				},
			}
		},
		[Symbol.asyncDispose]: () => all.disposeAsync(),
	}
}

async function startCutProxy(target: string): Promise<CutProxy & { stop(): Promise<void> }> {
	const { hostname, port } = new URL(target)
	const sockets = new Set<Socket>()
	let wanted: string | undefined
	let cuts = 0
	const server = createServer((client) => {
		const upstream = connect(Number(port), hostname)
		let seen = ''
		const end = (): void => {
			client.destroy()
			upstream.destroy()
		}
		for (const socket of [client, upstream]) {
			sockets.add(socket)
			socket.on('error', end).on('close', end)
		}
		client.on('data', (part) => upstream.write(part))
		upstream.on('data', (part) => {
			const before = seen.length
			seen += part.toString('latin1')
			const at = wanted === undefined ? -1 : seen.indexOf(wanted)
			if (wanted === undefined || at < 0) return client.write(part)
			// The rest of this chunk may complete what the client waits for.
			client.end(part.subarray(0, Math.max(0, at + wanted.length - before)))
			upstream.destroy()
			wanted = undefined
			cuts++
		})
	})
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		cutAfter: (text) => void (wanted = text),
		cuts: () => cuts,
		async stop() {
			for (const socket of sockets) socket.destroy()
			await new Promise((resolve) => server.close(resolve))
		},
	}
}
