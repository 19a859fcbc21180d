/** Checks of the API's error responses. */
import type { Test } from 'tap'
import type { Answer, Reply } from './gateway.ts'

export interface ExpectedError {
	status: number
	code: string
	/** The message must match this. */
	message?: RegExp
	/** The field that `errors` must name. */
	path?: string
}

/** Asserts the status, the exact shape of the error body, and a nonempty message. */
export function assertError(t: Test, reply: Reply<Answer>, wanted: ExpectedError, about = ''): void {
	const { status, body } = reply
	if (status !== wanted.status) {
		t.equal(status, wanted.status, `${about}: status ${status} with ${JSON.stringify(body).slice(0, 500)}`)
		return
	}
	const { statusCode, error, message, code, errors, ...rest } = body
	t.equal(statusCode, wanted.status, `${about}: statusCode`)
	t.equal(code, wanted.code, `${about}: code`)
	t.ok(typeof error === 'string' && error !== '', `${about}: error`)
	t.ok(typeof message === 'string' && message !== '', `${about}: message`)
	if (wanted.message) t.match(message, wanted.message, `${about}: message`)
	t.strictSame(rest, {}, `${about}: no other field`)
	if (wanted.path === undefined) return
	t.ok(Array.isArray(errors) && errors.length > 0, `${about}: errors`)
	for (const one of errors) t.strictSame(Object.keys(one).toSorted(), ['message', 'path'], `${about}: errors`)
	const found = errors.find((one: { path: string }) => one.path === wanted.path)
	t.ok(found, `${about}: errors name ${wanted.path}, there is ${JSON.stringify(errors)}`)
}

/** True for a response that is acceptable for any request: not 5xx, and errors in the common shape. */
export function isProperResponse({ status, body }: Reply<Answer>): boolean {
	if (status < 400) return true
	return (
		status < 500 &&
		body.statusCode === status &&
		typeof body.error === 'string' &&
		typeof body.code === 'string' &&
		typeof body.message === 'string' &&
		body.message !== ''
	)
}
