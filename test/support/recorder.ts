/** aimock behind a proxy that records the original bodies of requests: aimock's journal converts all dialects to one form. */
import { createServer } from 'node:http'
import { LLMock } from '@copilotkit/aimock'
import type { Test } from 'tap'
import type { Answer } from './gateway.ts'
import { listenOnLoopback, unlessReset } from './loopback.ts'

export interface Recorder {
	mock: LLMock
	/** For `base_url`, without the version; requests are recorded under this name. */
	url(name: string): string
	/** Oldest first. */
	bodies(name: string): Answer[]
}

export async function startRecorder(t: Test): Promise<Recorder> {
	const mock = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent' })
	await mock.start()
	t.teardown(() => mock.stop())
	const kept = new Map<string, Answer[]>()
	const server = createServer((request, response) => {
		const forward = async (): Promise<void> => {
			const parts: Buffer[] = []
			for await (const part of request) parts.push(part as Buffer)
			const body = Buffer.concat(parts)
			const [, name = '', path = ''] = /^\/([^/]+)(\/.*)$/.exec(request.url ?? '') ?? []
			kept.set(name, [...(kept.get(name) ?? []), JSON.parse(body.toString())])
			const { host: _host, 'content-length': _length, ...headers } = request.headers
			const answer = await fetch(mock.url + path, {
				method: 'POST',
				headers: headers as Record<string, string>,
				body: body as unknown as string,
			})
			response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
			response.end(Buffer.from(await answer.arrayBuffer()))
		}
		forward().catch(unlessReset)
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return { mock, url: (name) => `${url}/${name}`, bodies: (name) => kept.get(name) ?? [] }
}
