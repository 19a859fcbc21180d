import { Fault } from '../../core/errors.ts'
import { isObject } from '../../core/util/is-object.ts'

/** Limit of values in a message. No message needs many, and the SDK checks each several times and reports every error. */
const VALUE_LIMIT = 1_000
/** Limit for `initialize`: a client's description of itself is kept as long as its session. */
const INITIALIZE_CHARACTERS = 64 * 1024
/** It is sent back with every progress notification. */
const TOKEN_CHARACTERS = 256

/** Throws `invalid_request` or `payload_too_large` for a message that costs far more than its size suggests. */
export function refuseBulk(body: unknown): void {
	if (!isObject(body)) return
	if (hasMoreValues(body, VALUE_LIMIT))
		throw new Fault('invalid_request', `the message holds more than ${VALUE_LIMIT} values`)
	const { params } = body
	const meta = isObject(params) ? params._meta : undefined
	const token = isObject(meta) ? meta.progressToken : undefined
	if (typeof token === 'string' && token.length > TOKEN_CHARACTERS)
		throw new Fault('invalid_request', `params._meta.progressToken has more than ${TOKEN_CHARACTERS} characters`)
	if (isInitialize(body) && JSON.stringify(body).length > INITIALIZE_CHARACTERS)
		throw new Fault('payload_too_large', `initialize has more than ${INITIALIZE_CHARACTERS} characters`)
}

/** The SDK checks it further; it is not loaded for anything else. */
export function isInitialize(body: unknown): boolean {
	return isObject(body) && body.method === 'initialize' && 'id' in body
}

/** The depth of a body is bounded. */
function hasMoreValues(root: object, limit: number): boolean {
	const left: object[] = [root]
	let values = 0
	for (let one = left.pop(); one; one = left.pop()) {
		for (const value of Object.values(one)) {
			if (++values > limit) return true
			if (typeof value === 'object' && value !== null) left.push(value)
		}
	}
	return false
}
