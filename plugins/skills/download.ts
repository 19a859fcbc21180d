/** A skill's document from an address that somebody named. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Source } from './contract.ts'

export interface Downloaded {
	markdown: string
	source: Extract<Source, { kind: 'url' }>
}

const LIMIT_BYTES = 256 * 1024
const TIMEOUT_MS = 20_000
/** At the same time. */
const DOWNLOADS_LIMIT = 16
let active = 0

const textTypes = new Set(['text/markdown', 'text/x-markdown', 'text/plain'])

/**
 * `allowPrivate`: the address that is named may be private; one behind a redirect never. Throws `address_refused`, or
 * `invalid_request` for an answer that is no skill.
 */
export async function download(url: string, allowPrivate: boolean): Promise<Downloaded> {
	if (active >= DOWNLOADS_LIMIT) {
		throw new Fault('rate_limited', `${DOWNLOADS_LIMIT} skills are being fetched already; try again in a moment`, {
			headers: { 'retry-after': '5' },
		})
	}
	active++
	try {
		const { guardedFetch } = await import('../../core/guarded-fetch.ts') // heavy, and seldom needed
		const response = await guardedFetch(
			url,
			{ headers: { accept: 'text/markdown, text/plain;q=0.9' } },
			{
				reach: {
					protocols: ['https:', 'http:'],
					private_first: allowPrivate,
					hint: 'a caller with the scope * may name it, or an operator can set skills.allow_private_urls',
				},
				max_bytes: LIMIT_BYTES,
				timeout_ms: TIMEOUT_MS,
			},
		)
		await checkAnswer(response)
		const bytes = Buffer.from(await response.arrayBuffer())
		return { markdown: textOf(bytes), source: { kind: 'url', url, resolved_url: response.url } }
	} catch (error) {
		// What another server does is no fault of this one: the address is what has to change.
		if (!isFault(error, 'fetch_failed', 'fetch_timeout', 'fetch_too_large')) throw error
		throw new Fault('invalid_request', `no skill could be fetched from there: ${error.message}`, {
			errors: [{ path: 'url', message: error.message }],
			cause: error,
		})
	} finally {
		active--
	}
}

async function checkAnswer(response: Response): Promise<void> {
	const type = (response.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
	const advice = type === 'text/html' ? '; give the address of the raw file instead of its page' : ''
	const message = !response.ok
		? `the server answered with status ${response.status}`
		: textTypes.has(type)
			? undefined
			: `the answer is ${type === '' ? 'of no stated type' : type}, and a skill is text/markdown or text/plain${advice}`
	if (message === undefined) return
	await response.body?.cancel()
	throw new Fault('invalid_request', message, { errors: [{ path: 'url', message }] })
}

function textOf(bytes: Buffer): string {
	try {
		// With its byte order mark, where there is one: the digest is that of the bytes.
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch (error) {
		throw new Fault('skill_invalid', 'the document is not UTF-8 text', { cause: error })
	}
}
