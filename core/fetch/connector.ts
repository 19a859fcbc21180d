/** Makes connections, and only to addresses that were checked a moment before. */
import { isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { checkAddresses, hostOf } from './policy.ts'
import type { FetchPolicy } from './policy.ts'
import type { Answer, Lookup } from './lookup.ts'

const CONNECT_TIMEOUT_MS = 10_000

/** For undici's `connect`: every socket is made here, for names and for IP addresses alike. */
export function checkedConnector(policy: FetchPolicy, named: boolean, lookup: Lookup): buildConnector.connector {
	const prepare = async (url: URL): Promise<buildConnector.connector> => {
		const answers = await resolveChecked(url, policy, named, lookup)
		return buildConnector({
			allowH2: false,
			rejectUnauthorized: true, // also where the environment says otherwise
			timeout: CONNECT_TIMEOUT_MS,
			autoSelectFamily: true,
			lookup: answering(answers),
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

/** All addresses that the URL's host leads to. Throws `address_refused` unless each may be reached. */
export async function resolveChecked(url: URL, policy: FetchPolicy, named: boolean, lookup: Lookup): Promise<Answer[]> {
	const host = hostOf(url)
	const family = isIP(host)
	const answers = family === 0 ? await lookup(host) : [{ address: host, family }]
	if (answers.length === 0) throw new Error(`${host} has no address`)
	const addresses = answers.map(({ address }) => address)
	checkAddresses(url, addresses, policy, named)
	return answers
}

/** A lookup that knows its answer already. */
function answering(answers: Answer[]): LookupFunction {
	return (_host, { all }, callback) => {
		const [first] = answers
		if (all) callback(null, answers)
		else callback(null, first?.address ?? '', first?.family ?? 4)
	}
}
