/** The parts of requests and responses that are not left to the SDK. */
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import type { JSONRPCErrorResponse, RequestId } from '@modelcontextprotocol/sdk/types.js'
import type { McpRequest } from './contract.ts'

const COMPLAINT_CHARACTERS = 500
/** What the transport reads; the rest, such as the token, is not passed on. */
const passedOn = ['accept', 'content-type', 'last-event-id', 'mcp-protocol-version', 'mcp-session-id']

/** Of a request; a notification has none, and a response has the id of our request. */
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

/** For invalid params, the SDK reports an internal error, with the complete output of its validator. */
export function plainer(error: JSONRPCErrorResponse['error']): JSONRPCErrorResponse['error'] {
	if (error.code !== ErrorCode.InternalError || error.data !== undefined) return error
	return {
		code: ErrorCode.InvalidParams,
		message: `the params are wrong: ${error.message.slice(0, COMPLAINT_CHARACTERS)}`,
	}
}

/** For the log. The SDK's errors may end with the message that they are about, as JSON, which may be a user's answer. */
export function withoutContent(complaint: string): string {
	return complaint.replace(/[[{].*$/s, '…').slice(0, COMPLAINT_CHARACTERS)
}
