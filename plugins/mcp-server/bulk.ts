import { Fault } from '../../core/errors.ts'
import { fieldsOf, isObject } from '../../core/util/is-object.ts'

/** Limit of values in a message. No message needs many. The SDK checks each value several times, and reports every error. */
const VALUE_LIMIT = 1_000
/** Limit for `initialize`, which is kept as long as the session. */
const INITIALIZE_CHARACTERS = 64 * 1024
/** Limit for the progress token, which every progress notification repeats. */
const TOKEN_CHARACTERS = 256

/** Throws `invalid_request` or `payload_too_large` for a message that would cost far more than its size suggests. */
export function refuseBulk(body: unknown): void {
	if (!isObject(body)) return
	if (hasMoreValues(body, VALUE_LIMIT))
		throw new Fault('invalid_request', `the message contains more than ${VALUE_LIMIT} values`)
	const token = fieldsOf(fieldsOf(body.params)._meta).progressToken
	if (typeof token === 'string' && token.length > TOKEN_CHARACTERS)
		throw new Fault('invalid_request', `params._meta.progressToken has more than ${TOKEN_CHARACTERS} characters`)
	if (isInitialize(body) && JSON.stringify(body).length > INITIALIZE_CHARACTERS)
		throw new Fault('payload_too_large', `initialize has more than ${INITIALIZE_CHARACTERS} characters`)
}

/** Whether a message may be an `initialize` request. The SDK, which is loaded for the first one, validates it. */
export function isInitialize(body: unknown): boolean {
	return isObject(body) && body.method === 'initialize' && 'id' in body
}

/** Needs no depth limit: the depth of a body is already limited. */
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
