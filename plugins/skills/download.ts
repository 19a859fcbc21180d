/** Downloads a skill from an address: of a document, an archive, or a page of a Git host. */
import { Fault, isFault } from '../../core/errors.ts'
import { reserveOf, Shares } from '../../core/util/shares.ts'
import { tryLater } from '../shared/try-later.ts'
import type { Source } from './contract.ts'
import type { SkillFolder } from './folder/contract.ts'
import { ARCHIVE_LIMIT_BYTES, archiveKind, archiveTypes, folderOfDocument, unpack } from './folder/unpack.ts'
import { archiveAddressOf } from './git-host.ts'

const TEXT_LIMIT_BYTES = 256 * 1024
const TIMEOUT_MS = 60_000
/** Limit of concurrent downloads, each of which has an archive in memory. */
const DOWNLOADS_LIMIT = 8
const places = new Shares(
	() => DOWNLOADS_LIMIT,
	() => reserveOf(DOWNLOADS_LIMIT),
)

const textTypes = new Set(['text/markdown', 'text/x-markdown', 'text/plain'])

interface Wanted {
	url: string
	/** The skill's folder in an archive. */
	path: string | undefined
	/** Whether the given address may be private. A redirect's address never may. */
	allowPrivate: boolean
	/** The uid of the agent whose share of the downloads it uses. */
	owner: string
}

/** Throws `address_refused`, `rate_limited`, `invalid_request` for a response that is not a skill, and what `unpack` throws. */
export async function download(wanted: Wanted): Promise<{ folder: SkillFolder; source: Source }> {
	const { url, path, owner } = wanted
	if (!places.may(owner))
		throw tryLater('rate_limited', `${places.used} skills are already being downloaded; try again in a moment`, 5)
	places.add(owner)
	try {
		const page = archiveAddressOf(url)
		const { bytes, resolved_url } = await fetched(page?.url ?? url, wanted)
		const folder = archiveKind(bytes) ? await unpack(bytes, path ?? (page?.path || undefined)) : folderOfDocument(bytes)
		return { folder, source: { kind: 'url', url, resolved_url } }
	} finally {
		places.remove(owner)
	}
}

async function fetched(url: string, { allowPrivate, owner }: Wanted): Promise<{ bytes: Buffer; resolved_url: string }> {
	try {
		const { guardedFetch } = await import('../../core/fetch/guarded-fetch.ts') // heavy, and rarely needed
		const response = await guardedFetch(
			url,
			{ headers: { accept: 'text/markdown, text/plain;q=0.9, application/zip, application/gzip, */*;q=0.1' } },
			{
				policy: {
					protocols: ['https:', 'http:'],
					private_first: allowPrivate,
					hint: 'a caller with the scope * may use it, or an operator can set skills.allow_private_urls',
				},
				max_bytes: ARCHIVE_LIMIT_BYTES,
				timeout_ms: TIMEOUT_MS,
				owner,
			},
		)
		const allowed = await checkResponse(response, url)
		return { bytes: await bodyOf(response, allowed), resolved_url: response.url }
	} catch (error) {
		// An error of another server is reported as an invalid request, not as an error of the gateway.
		if (!isFault(error, 'fetch_failed', 'fetch_timeout', 'fetch_too_large')) throw error
		throw refusal(`no skill could be downloaded from this address: ${error.message}`, error.message, error)
	}
}

type Allowed = 'text' | 'archive' | 'any'

/** The kinds of content that the response's type allows. Many file servers do not know the types of Markdown files and archives. */
async function checkResponse(response: Response, url: string): Promise<Allowed> {
	const type = (response.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
	const isMarkdown = /\.md$/i.test(URL.parse(url)?.pathname ?? '')
	if (response.ok && textTypes.has(type)) return 'text'
	if (response.ok && archiveTypes.has(type)) return 'archive'
	if (response.ok && type === 'application/octet-stream') return isMarkdown ? 'any' : 'archive'
	const advice = type === 'text/html' ? '; give the address of the raw file, or of an archive, instead of its page' : ''
	await response.body?.cancel()
	throw refusal(
		response.ok
			? `the response ${type === '' ? 'has no content type' : `is ${type}`}, but a skill must be text/markdown, text/plain, a zip or a tar.gz${advice}`
			: `the server responded with status ${response.status}`,
	)
}

async function bodyOf(response: Response, allowed: Allowed): Promise<Buffer> {
	const parts: Uint8Array[] = []
	let size = 0
	for await (const part of response.body ?? []) {
		parts.push(part)
		size += part.length
		// By now an archive can be recognized. Only an archive may be longer.
		if (size > TEXT_LIMIT_BYTES && (allowed === 'text' || !archiveKind(Buffer.concat(parts.slice(0, 5)))))
			throw refusal(`the document has more than ${TEXT_LIMIT_BYTES} bytes`)
	}
	const bytes = Buffer.concat(parts)
	const isArchive = archiveKind(bytes) !== undefined
	if (isArchive && allowed === 'text') throw refusal('the response is declared as text, but is an archive')
	if (!isArchive && allowed === 'archive') {
		const type = response.headers.get('content-type') ?? ''
		const advice = /octet-stream/i.test(type) ? '; the path of a document must end in .md' : ''
		throw refusal(`the response is ${type}, but neither a zip nor a tar.gz archive${advice}`)
	}
	return bytes
}

function refusal(message: string, detail = message, cause?: unknown): Fault {
	return new Fault('invalid_request', message, { errors: [{ path: 'url', message: detail }], cause })
}
