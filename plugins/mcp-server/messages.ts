/** What of requests and answers is not left to the SDK. */
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import type { JSONRPCErrorResponse, RequestId } from '@modelcontextprotocol/sdk/types.js'
import type { McpRequest } from './contract.ts'

const COMPLAINT_CHARACTERS = 500
/** What the transport looks at; the rest, such as the token, stays out of it. */
const passedOn = ['accept', 'content-type', 'last-event-id', 'mcp-protocol-version', 'mcp-session-id']

/** Of a request; a notification has none, and a response has that of ours. */
export function requestIdIn(body: unknown): RequestId | undefined {
	const { id, method } = Object(body) as { id?: RequestId; method?: unknown }
	return method === undefined ? undefined : id
}

export function forTransport(headers: McpRequest['headers']): Headers {
	const passed = new Headers()
	for (const name of passedOn) {
		const value = headers[name]
		if (typeof value === 'string') passed.set(name, value)
	}
	return passed
}

/** Of params that do not fit, the SDK says that this is an internal error, and all that its checker has to say of them. */
export function plainer(error: JSONRPCErrorResponse['error']): JSONRPCErrorResponse['error'] {
	if (error.code !== ErrorCode.InternalError || error.data !== undefined) return error
	return {
		code: ErrorCode.InvalidParams,
		message: `the params are wrong: ${error.message.slice(0, COMPLAINT_CHARACTERS)}`,
	}
}

/** For the log. The SDK's complaints may end with the message that they are about, as JSON: somebody's answer, for one. */
export function withoutContent(complaint: string): string {
	return complaint.replace(/[[{].*$/s, '…').slice(0, COMPLAINT_CHARACTERS)
}
