import type { ServerResponse } from 'node:http'

const RETRY_AFTER_S = 2

/** Body and headers of a 503. */
export function refusal(message: string): [body: object, headers: Record<string, string>] {
	return [
		{ statusCode: 503, error: 'Service Unavailable', code: 'unavailable', message },
		{ 'retry-after': String(RETRY_AFTER_S) },
	]
}

export function refuseRequest(response: ServerResponse, message: string): void {
	if (response.headersSent) return void response.destroy()
	const [body, headers] = refusal(message)
	response.writeHead(503, { 'content-type': 'application/json; charset=utf-8', ...headers }).end(JSON.stringify(body))
}
