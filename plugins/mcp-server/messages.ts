/** Adapts requests and responses of the SDK. */
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import type { JSONRPCErrorResponse, RequestId } from '@modelcontextprotocol/sdk/types.js'
import type { McpRequest } from './contract.ts'

const MESSAGE_CHARACTERS = 500
/** The headers that the transport reads. Others, such as the token, are not forwarded. */
const forwarded = ['accept', 'content-type', 'last-event-id', 'mcp-protocol-version', 'mcp-session-id']

/** The id of a request. Undefined for a notification, and for a response, whose id is that of our request. */
export function requestIdIn(body: unknown): RequestId | undefined {
	const { id, method } = Object(body) as { id?: RequestId; method?: unknown }
	return method === undefined ? undefined : id
}

export function transportHeaders(headers: McpRequest['headers']): Headers {
	const selected = new Headers()
	for (const name of forwarded) {
		const value = headers[name]
		if (typeof value === 'string') selected.set(name, value)
	}
	return selected
}

/** For invalid params, the SDK reports an internal error with the complete output of its validator. Corrects the code, and cuts it. */
export function correctedError(error: JSONRPCErrorResponse['error']): JSONRPCErrorResponse['error'] {
	if (error.code !== ErrorCode.InternalError || error.data !== undefined) return error
	return {
		code: ErrorCode.InvalidParams,
		message: `the params are wrong: ${error.message.slice(0, MESSAGE_CHARACTERS)}`,
	}
}

/** An error message for the log. The SDK's messages may end with the JSON of the client's message, such as a user's answer. */
export function withoutContent(message: string): string {
	return message.replace(/[[{].*$/s, '…').slice(0, MESSAGE_CHARACTERS)
}
