/** Downloads a file from an address that a caller names. */
import { Fault, isFault } from '../../core/errors.ts'
import { reserveOf, Shares } from '../../core/util/shares.ts'
import { tryLater } from '../shared/try-later.ts'

export interface FetchedFile {
	bytes: Uint8Array
	/** The last part of its path. */
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

interface Fetching {
	max_bytes: number
	private_hosts: readonly string[]
	/** Whose share it counts for: the uid of an agent. */
	owner: string
}

/** Throws `address_refused`, `unavailable`, or `invalid_request` for whatever is wrong with the answer. */
export async function fetchFile(url: string, { max_bytes, private_hosts, owner }: Fetching): Promise<FetchedFile> {
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
		// Another server's error is not one of this gateway: the address must be changed.
		if (!isFault(error, 'fetch_failed', 'fetch_timeout', 'fetch_too_large', 'invalid_request')) throw error
		throw new Fault('invalid_request', `no attachment could be fetched from there: ${error.message}`, { cause: error })
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
