import type { FaultCode } from '../../core/errors.ts'
import { Fault } from '../../core/errors.ts'

/** Converts an error that is not the result of a tool to a protocol error. */
export class RpcError extends Error {
	readonly code: number
	readonly data: { code: FaultCode }

	constructor(code: number, message: string, data: { code: FaultCode }) {
		super(message)
		this.name = 'RpcError'
		this.code = code
		this.data = data
	}
}

/** JSON-RPC's own codes, and the protocol's for an unknown resource. */
const INVALID_PARAMS = -32602
const INTERNAL_ERROR = -32603
const RESOURCE_NOT_FOUND = -32002
const SERVER_ERROR = -32000

/** A bug is reported without details; its text may contain internals. */
export function toRpcError(error: unknown): RpcError {
	if (!(error instanceof Fault)) return new RpcError(INTERNAL_ERROR, 'internal error', { code: 'internal' })
	const { code, message } = error
	if (code === 'not_found') return new RpcError(RESOURCE_NOT_FOUND, message, { code })
	if (code === 'invalid_request' || code === 'tool_unknown') return new RpcError(INVALID_PARAMS, message, { code })
	return new RpcError(SERVER_ERROR, message, { code })
}
