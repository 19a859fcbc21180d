/** Downloads a file from a URL of a caller. */
import { Fault, isFault } from '../../core/errors.ts'
import { reserveOf, Shares } from '../../core/util/shares.ts'
import { tryLater } from '../shared/try-later.ts'

export interface FetchedFile {
	bytes: Uint8Array
	/** The last part of the URL's path. */
	name?: string
	media_type?: string
}

const TIMEOUT_MS = 20_000
/** Concurrent downloads. Each is in memory. */
const DOWNLOADS_LIMIT = 8
const places = new Shares(
	() => DOWNLOADS_LIMIT,
	() => reserveOf(DOWNLOADS_LIMIT),
)

interface FetchOptions {
	max_bytes: number
	private_hosts: readonly string[]
	/** The uid of the agent, whose share of the downloads is used. */
	owner: string
}

/** Throws `address_refused`, `unavailable` if too many downloads are in progress, and `invalid_request` if the download fails. */
export async function fetchFile(url: string, { max_bytes, private_hosts, owner }: FetchOptions): Promise<FetchedFile> {
	if (!places.may(owner))
		throw tryLater('unavailable', `${places.used} attachments are being fetched already; try again in a moment`, 2)
	places.add(owner)
	try {
		const { guardedFetch } = await import('../../core/fetch/guarded-fetch.ts') // heavy, and rarely needed
		const policy = {
			protocols: ['https:', 'http:'],
			private_hosts,
			hint: 'an operator can list its host in attachments.allowed_hosts',
		} as const
		const response = await guardedFetch(url, {}, { policy, max_bytes, timeout_ms: TIMEOUT_MS, owner })
		if (!response.ok) {
			await response.body?.cancel()
			throw new Fault('invalid_request', `the server answered with status ${response.status}`)
		}
		const media_type = response.headers.get('content-type')
		const name = nameIn(response.url || url)
		return {
			bytes: new Uint8Array(await response.arrayBuffer()),
			...(name !== '' && { name }),
			...(media_type !== null && { media_type }),
		}
	} catch (error) {
		// For the caller, an error of the other server is an invalid URL, not an error of the gateway.
		if (!isFault(error, 'fetch_failed', 'fetch_timeout', 'fetch_too_large', 'invalid_request')) throw error
		throw new Fault('invalid_request', `the attachment could not be fetched: ${error.message}`, { cause: error })
	} finally {
		places.remove(owner)
	}
}

function nameIn(url: string): string {
	const last = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
	try {
		return decodeURIComponent(last)
	} catch {
		return last
	}
}
