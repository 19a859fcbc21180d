/** The connections of one fetcher. Each goes to an address that was checked just before. */
import { isIP } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { checkAddresses, hostOf } from './policy.ts'
import type { FetchPolicy } from './policy.ts'
import { systemLookup } from './system-lookup.ts'
import type { Lookup, ResolvedAddress } from './system-lookup.ts'

export interface ResolveOptions {
	policy: FetchPolicy
	/** Resolves names. Default: the system. */
	lookup?: Lookup
	/** In whose share of the lookups it counts, such as the uid of an agent. Default: that of the gateway. */
	owner?: string
}

export interface ConnectionOptions extends ResolveOptions {
	/** Of the body, after decompression. Infinity for streams without an end. */
	max_bytes: number
	/** Limit before the headers, and between two chunks of the body. Default: none besides `timeout_ms`. */
	idle_ms?: number
}

const CONNECT_TIMEOUT_MS = 10_000
const HEADER_BYTES = 16 * 1024
/** The origins of one fetcher, and the connections to each. */
const ORIGINS = 16
const CONNECTIONS = 64

export type ConnectionPool = ReturnType<typeof openConnections>

/** Two pools: a connection that was allowed for the named origin must not serve a redirect to the same place. */
export function openConnections({ idle_ms = 0, max_bytes, ...resolving }: ConnectionOptions) {
	const open = (named: boolean): Agent =>
		new Agent({
			connect: checkedConnector(named, resolving),
			allowH2: false,
			maxOrigins: ORIGINS,
			connections: CONNECTIONS,
			maxHeaderSize: HEADER_BYTES,
			headersTimeout: idle_ms,
			bodyTimeout: idle_ms,
			// Of the compressed data. Without this limit, compressed data that unpacks to nothing could be endless.
			maxResponseSize: max_bytes === Infinity ? -1 : max_bytes + 1024,
		})
	let forNamed: Agent | undefined
	let forOthers: Agent | undefined
	return {
		/** `named`: for the origin that the caller named; false for the target of a redirect. */
		of: (named: boolean) => (named ? (forNamed ??= open(true)) : (forOthers ??= open(false))),
		async destroy() {
			await Promise.all([forNamed?.destroy(), forOthers?.destroy()])
		},
	}
}

/** All addresses of the URL's host. Throws `address_refused` unless each may be reached. */
export async function resolveChecked(
	url: URL,
	named: boolean,
	{ policy, owner, lookup = systemLookup }: ResolveOptions,
): Promise<ResolvedAddress[]> {
	const host = hostOf(url)
	const family = isIP(host)
	const answers = family === 0 ? await lookup(host, owner) : [{ address: host, family }]
	if (answers.length === 0) throw new Error(`${host} has no address`)
	const addresses = answers.map(({ address }) => address)
	checkAddresses(url, addresses, policy, named)
	return answers
}

/** For undici's `connect`: opens every socket, to names and to IP addresses alike. */
function checkedConnector(named: boolean, resolving: ResolveOptions): buildConnector.connector {
	const prepare = async (url: URL): Promise<buildConnector.connector> => {
		const answers = await resolveChecked(url, named, resolving)
		return buildConnector({
			allowH2: false,
			rejectUnauthorized: true, // NODE_TLS_REJECT_UNAUTHORIZED must not override it
			timeout: CONNECT_TIMEOUT_MS,
			autoSelectFamily: true,
			lookup: (_host, { all }, callback) => {
				const [first] = answers
				if (all) callback(null, answers)
				else callback(null, first?.address ?? '', first?.family ?? 4)
			},
		})
	}
	return (target, callback) => {
		prepare(new URL(`${target.protocol}//${target.host}`)).then(
			(connect) => connect(target, callback),
			// oxlint-disable-next-line promise/no-callback-in-promise -- undici calls with a callback
			(error: Error) => callback(error, null),
		)
	}
}
