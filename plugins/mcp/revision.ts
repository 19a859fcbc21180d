/** Recognizes servers that support only revisions of the protocol that the SDK does not support. */
import { McpError, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js'
import { Fault, messageOf } from '../../core/errors.ts'

const REVISIONS = 5
/** A date as a rule. */
const REVISION = /^[\w.-]{1,32}$/
/** Characters of an answer that lists revisions. */
const ANSWER_LIMIT = 8_192
/** The SDK's own message about the answer to `initialize`. */
const NOT_SUPPORTED = /protocol version is not supported: (\S+)$/

/** The error to report if the server refused or answered `initialize` with other revisions only. A retry cannot fix it. */
export function otherRevision(error: unknown): Fault | undefined {
	const theirs = offeredBy(error)
	if (theirs.length === 0) return undefined
	const ours = SUPPORTED_PROTOCOL_VERSIONS.toSorted()
	const both = `the server supports only revision ${theirs.join(', ')} of MCP, and the gateway supports ${ours[0]} to ${ours.at(-1)}`
	return new Fault('mcp_failed', `${both}; configure the server to accept one of these too, or use a version that does`)
}

function offeredBy(error: unknown): string[] {
	const data = error instanceof McpError ? error.data : dataIn(messageOf(error))
	const { supported } = Object(data) as { supported?: unknown }
	const offered = Array.isArray(supported) ? (supported as unknown[]) : [NOT_SUPPORTED.exec(messageOf(error))?.[1]]
	return offered.filter((one) => typeof one === 'string' && REVISION.test(one)).slice(0, REVISIONS) as string[]
}

/** The SDK reports the body of an answer with an HTTP status of failure in its message. */
function dataIn(message: string): unknown {
	if (message.length > ANSWER_LIMIT) return undefined
	try {
		const body = JSON.parse(message.slice(message.indexOf('{'))) as { error?: { data?: unknown } }
		return body.error?.data
	} catch {
		return undefined
	}
}
