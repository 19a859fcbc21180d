/** Recognizes servers that support only revisions of the protocol that the SDK does not support. */
import { McpError, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js'
import { Fault, messageOf } from '../../core/errors.ts'
import { jsonIn } from '../../core/util/json-in.ts'

const REVISIONS = 5
/** Usually a date. */
const REVISION = /^[\w.-]{1,32}$/
/** Limit of characters of an error message that is searched for revisions. */
const ANSWER_LIMIT = 8_192
/** The SDK's error for an answer to `initialize` with a revision that the SDK does not support. */
const NOT_SUPPORTED = /protocol version is not supported: (\S+)$/

/** The error to report if the server offered only other revisions in its answer to `initialize`. A retry cannot fix it. */
export function otherRevision(error: unknown): Fault | undefined {
	const theirs = offeredBy(error)
	if (theirs.length === 0) return undefined
	const ours = SUPPORTED_PROTOCOL_VERSIONS.toSorted()
	const both = `the server supports only revision ${theirs.join(', ')} of MCP, and the gateway supports ${ours[0]} to ${ours.at(-1)}`
	return new Fault(
		'mcp_failed',
		`${both}; configure the server to accept one of these as well, or use a version of it that does`,
	)
}

function offeredBy(error: unknown): string[] {
	const data = error instanceof McpError ? error.data : dataIn(messageOf(error))
	const { supported } = Object(data) as { supported?: unknown }
	const offered = Array.isArray(supported) ? (supported as unknown[]) : [NOT_SUPPORTED.exec(messageOf(error))?.[1]]
	return offered.filter((one) => typeof one === 'string' && REVISION.test(one)).slice(0, REVISIONS) as string[]
}

/** The message of the SDK's error contains the body of an HTTP response that reports a failure. */
function dataIn(message: string): unknown {
	if (message.length > ANSWER_LIMIT) return undefined
	const body = jsonIn(message.slice(message.indexOf('{'))) as { error?: { data?: unknown } | null } | null | undefined
	return body?.error?.data
}
