/** A model server whose responses a test writes itself, including those that no real server sends. */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { listenOnLoopback } from './loopback.ts'

export interface RawServer {
	/** For `base_url` of a provider. */
	url: string
	/** Oldest first. */
	requests: IncomingMessage[]
	stop(): Promise<void>
}

/** `respond` is called once a request was received completely. The server stops after the test. */
export async function startRawServer(
	t: Pick<Test, 'teardown'>,
	respond: (response: ServerResponse, request: IncomingMessage) => unknown,
): Promise<RawServer> {
	const requests: IncomingMessage[] = []
	const server = createServer((request, response) => {
		requests.push(request)
		request.resume().on('end', () => respond(response, request))
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return { url: `${url}/v1`, requests, stop }
}

/** Starts a stream of server-sent events. */
export function startStream(response: ServerResponse): ServerResponse {
	return response.writeHead(200, { 'content-type': 'text/event-stream' })
}
