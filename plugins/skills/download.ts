/** Downloads a skill's document from a given address. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Source } from './contract.ts'

export interface Downloaded {
	markdown: string
	source: Extract<Source, { kind: 'url' }>
}

const LIMIT_BYTES = 256 * 1024
const TIMEOUT_MS = 20_000
/** Concurrent downloads. */
const DOWNLOADS_LIMIT = 16
let active = 0

const textTypes = new Set(['text/markdown', 'text/x-markdown', 'text/plain'])

/**
 * `allowPrivate`: the given address may be private; a redirect's never. Throws `address_refused`, or
 * `invalid_request` for a response that is not a skill.
 */
export async function download(url: string, allowPrivate: boolean): Promise<Downloaded> {
	if (active >= DOWNLOADS_LIMIT) {
		throw new Fault('rate_limited', `${DOWNLOADS_LIMIT} skills are being fetched already; try again in a moment`, {
			headers: { 'retry-after': '5' },
		})
	}
	active++
	try {
		const { guardedFetch } = await import('../../core/fetch/guarded-fetch.ts') // heavy, and rarely needed
		const response = await guardedFetch(
			url,
			{ headers: { accept: 'text/markdown, text/plain;q=0.9' } },
			{
				policy: {
					protocols: ['https:', 'http:'],
					private_first: allowPrivate,
					hint: 'a caller with the scope * may name it, or an operator can set skills.allow_private_urls',
				},
				max_bytes: LIMIT_BYTES,
				timeout_ms: TIMEOUT_MS,
			},
		)
		await checkAnswer(response, isMarkdownFile(url))
		const bytes = Buffer.from(await response.arrayBuffer())
		return { markdown: textOf(bytes), source: { kind: 'url', url, resolved_url: response.url } }
	} catch (error) {
		// Another server's error is not an error of this one: the address must be changed.
		if (!isFault(error, 'fetch_failed', 'fetch_timeout', 'fetch_too_large')) throw error
		throw new Fault('invalid_request', `no skill could be fetched from there: ${error.message}`, {
			errors: [{ path: 'url', message: error.message }],
			cause: error,
		})
	} finally {
		active--
	}
}

/** File servers often do not know the type of Markdown files. */
function isMarkdownFile(url: string): boolean {
	return /\.md$/i.test(URL.parse(url)?.pathname ?? '')
}

async function checkAnswer(response: Response, isMarkdown: boolean): Promise<void> {
	const type = (response.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
	const advice = type === 'text/html' ? '; give the address of the raw file instead of its page' : ''
	const message = !response.ok
		? `the server answered with status ${response.status}`
		: textTypes.has(type) || (isMarkdown && type === 'application/octet-stream')
			? undefined
			: `the answer is ${type === '' ? 'of no stated type' : type}, and a skill is text/markdown or text/plain${advice}`
	if (message === undefined) return
	await response.body?.cancel()
	throw new Fault('invalid_request', message, { errors: [{ path: 'url', message }] })
}

function textOf(bytes: Buffer): string {
	try {
		// With its byte order mark, if any: the digest is that of the bytes.
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch (error) {
		throw new Fault('skill_invalid', 'the document is not UTF-8 text', { cause: error })
	}
}
