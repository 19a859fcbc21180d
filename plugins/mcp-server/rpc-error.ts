import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import { Fault } from '../../core/errors.ts'
import type { FaultCode } from '../../core/errors.ts'

/** The protocol's code for an unknown resource, and JSON-RPC's for any other error of a server. */
const RESOURCE_NOT_FOUND = -32002
const SERVER_ERROR = -32000

/** An error that is not the result of a tool, as the protocol has it. A bug is reported without details, which may be internals. */
export function toRpcError(error: unknown): Error {
	if (!(error instanceof Fault)) return rpcError(ErrorCode.InternalError, 'internal', 'internal error')
	const { code, said: message } = error
	if (code === 'not_found') return rpcError(RESOURCE_NOT_FOUND, code, message)
	if (code === 'invalid_request' || code === 'tool_unknown') return rpcError(ErrorCode.InvalidParams, code, message)
	return rpcError(SERVER_ERROR, code, message)
}

/** The SDK's own class would write the code before the message. */
function rpcError(rpcCode: number, code: FaultCode, message: string): Error {
	return Object.assign(new Error(message), { code: rpcCode, data: { code } })
}
